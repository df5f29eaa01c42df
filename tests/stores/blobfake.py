"""A Blob store of prepared answers."""

import httpx
from storefakes import CountingIds, HandClock

from fdagent.stores.blob import BlobStore
from fdagent.stores.blobauth import Bearer

URL = "https://onelake.example/ws"
CANARY = "canary-token-that-must-never-show"
KEY = "status/a.json"


class Fake:
    """A store that gives prepared answers, one a request, and keeps the requests."""

    def __init__(self, *answers, auth=None, **settings):
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.clock = HandClock()
        client = httpx.Client(transport=httpx.MockTransport(self.answer))
        auth = auth or Bearer(lambda: CANARY)
        ids = CountingIds()
        self.store = BlobStore(URL, "lake/Files", auth=auth, clock=self.clock, ids=ids, client=client, **settings)

    def answer(self, request):
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer


def says(status, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, content=body, headers={"x-ms-request-id": "1", **named})


def refused(status, code=""):
    return says(status, **({"x_ms_error_code": code} if code else {}))


def there(op="", etag='"0x1"', body=b"{}", **headers):
    own = {"x_ms_meta_op": op} if op else {}
    return says(200, body, etag=etag, **own, **headers)


NOW = 1_800_000_000
