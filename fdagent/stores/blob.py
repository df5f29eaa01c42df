"""Records as blobs of a store that speaks Azure's Blob API: OneLake, and Azurite in tests.

Guarantees
- A write or delete is one request with a condition. Success means that this very write landed. Conflict means that the
  only request sent was refused and, by what is there now, never landed: that was there before the request was sent, or
  was made straight from the version that a replace expected. Everything else is Unknown: a create that lost to one of
  the same second, too, since its first sending may have been deleted before a second one was refused. An answer that was lost or said 5xx, and a
  refusal, which may be of a second sending of the same request, are followed by a read; only this write's own op
  (`x-ms-meta-op`) there is success.
- A listing has every page or is an error; folders among the blobs are not records.
- Ages and the clock's offset are by the store's own clock; an answer out of a cache (`Age`) is refused.
- Tries, waits and what is said in errors: see `blobhttp.py`.

Does not guarantee
- that a request given up here never lands later: a create that does is a version nobody believes in (rule C3).
"""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import httpx

from fdagent.errors import Conflict, Denied, StoreError, Unavailable, Unknown
from fdagent.ports import Absent, Blob, Clock, Condition, Entry, Ids, Match
from fdagent.stores.blobauth import Auth
from fdagent.stores.blobhttp import BlobHttp, Outcome
from fdagent.stores.blobwire import BLOB_THERE, NO_CONTAINER, Answer, Page, parse_page
from fdagent.stores.keys import check_key, split_prefix
from fdagent.stores.recordfile import MAX_READ
from fdagent.stores.storeclock import STAMP_NOISE

PAGE_BLOBS = 5000
"""Blobs in one page of a listing: the most that the API gives."""
MAX_PAGES = 1000
MAX_PAGE = 32 * 1024 * 1024
"""Bytes of one listing page: 5,000 blobs take about 3 MB."""

MOST_SEEN = 1000
"""Records whose version last met is remembered."""

_FRESH = {"Cache-Control": "no-cache"}


class BlobStore:
    """A store below a folder of a container.

    Args:
        container: The container's URL; for OneLake `https://onelake.blob.fabric.microsoft.com/<workspace id>`.
        folder: What stands before every key, such as `<lakehouse id>/Files/_fabric_desktop`; may be empty.
        auth: Who asks.
        clock: This machine's clocks.
        ids: Ops and jitter.
        client: From `blobhttp.open_client`.
        page: Blobs asked for in one page of a listing.
    """

    def __init__(
        self,
        container: str,
        folder: str,
        *,
        auth: Auth,
        clock: Clock,
        ids: Ids,
        client: httpx.Client,
        page: int = PAGE_BLOBS,
    ) -> None:
        self._container = container.rstrip("/")
        self._root = f"{folder.strip('/')}/" if folder.strip("/") else ""
        self._http = BlobHttp(container, auth=auth, clock=clock, ids=ids, client=client)
        self._seen: dict[str, str] = {}
        self._clock = clock
        self._ids = ids
        self._page = page

    def list(self, prefix: str) -> Sequence[Entry]:
        """All records under `prefix`, by key, every page. What names no record may have is listed too."""
        folder, _ = split_prefix(prefix)
        found: dict[str, Entry] = {}
        marker = ""
        for _ in range(MAX_PAGES):
            page = self._list_page(folder, marker)
            found.update((entry.key, entry) for entry in page.entries)
            if not page.marker:
                return tuple(found[key] for key in sorted(found) if key.startswith(prefix))
            if page.marker == marker:
                break
            marker = page.marker
        raise Unavailable(
            f"The listing of {prefix or 'everything'} at {self._http.host} does not end.", fix="Try again."
        )

    def read(self, key: str) -> Blob | None:
        """The record, or None."""
        answer = self._get(key)
        return None if answer is None else Blob(answer.body, answer.etag, answer.age)

    def write(self, key: str, body: bytes, condition: Condition) -> str:
        """Write if the condition holds; returns the new etag."""
        op = self._ids.new()
        headers = {
            "x-ms-blob-type": "BlockBlob",
            "x-ms-meta-op": op,
            "x-ms-meta-was": _expected(condition),
            "x-ms-client-request-id": op,
            "Content-Type": "application/json",
            **_condition(condition),
        }
        sent, before = self._clock.elapsed(), self._seen.get(key, "")
        outcome = self._http.exchange("PUT", self._url(key), headers, body, limit=MAX_READ)
        answer = outcome.answer
        if answer is not None and answer.status == 201 and answer.etag:
            self._check_condition_kept(answer)
            self._see(key, answer.etag)
            return answer.etag
        lost = answer is not None and _lost(answer, condition)
        stored = answer is not None and answer.status < 300
        if not (lost or stored or outcome.unclear):
            raise self._http.refusal(outcome, key)
        found = self._get_after("write", key)
        if found is not None and _made_by(found, op, body):
            return found.etag
        there_before = found is not None and found.etag == before
        if lost and not outcome.unclear and (there_before or self._never_landed(found, condition, sent)):
            raise Conflict(f"{key} is no longer the version that was read, or is already there.")
        raise self._unknown("write", key)

    def delete(self, key: str, condition: Match) -> None:
        """Delete if this very version is there; Unknown, not Conflict, when nothing is: this delete may have done it."""
        headers = {"x-ms-client-request-id": self._ids.new(), **_condition(condition)}
        sent = self._clock.elapsed()
        outcome = self._http.exchange("DELETE", self._url(key), headers, limit=MAX_READ)
        answer = outcome.answer
        if answer is not None and answer.status in (200, 202, 204):
            self._check_condition_kept(answer)
            return
        if outcome.unclear:
            raise self._unknown("delete", key)
        if answer is None or not _lost(answer, condition):
            raise self._http.refusal(outcome, key)
        if self._never_landed(self._get_after("delete", key), condition, sent):
            raise Conflict(f"{key} is no longer the version that was read.")
        raise self._unknown("delete", key)

    def clock_offset(self) -> float | None:
        """The store's clock minus this machine's, from the `Date` of its recent answers."""
        return self._http.store_clock.offset()

    def _never_landed(self, found: Answer | None, condition: Condition, sent: float) -> bool:
        """Does what is there now prove that a refused request was never carried out, not even by a second sending?

        Both times are the store's; a stamp is cut to the second.
        """
        if found is None:
            return False
        if (found.age or 0.0) - STAMP_NOISE > self._clock.elapsed() - sent:
            return True
        # Made straight from the version that a replace expected, it leaves no room for that replace. Nothing is no such
        # version: what a create made may have been deleted again before another made this.
        return isinstance(condition, Match) and found.headers.get("x-ms-meta-was") == condition.etag

    def _get_after(self, what: str, key: str) -> Answer | None:
        """Read back; when that can't be done the outcome stays unknown."""
        try:
            return self._get(key)
        except StoreError as error:
            raise self._unknown(what, key) from error

    def _get(self, key: str) -> Answer | None:
        """The blob as it is now, not as a cache remembers it; None when there is none."""
        outcome = self._http.exchange("GET", self._url(key), dict(_FRESH), limit=MAX_READ)
        answer = self._answered(outcome, key)
        # A 404 without the store's mark is some other server's, and proves nothing.
        if answer.status == 404 and answer.code not in NO_CONTAINER and (answer.code or answer.request_id):
            return None
        if answer.status != 200 or not answer.etag:
            raise self._http.refusal(outcome, key)
        self._see(key, answer.etag)
        return answer

    def _see(self, key: str, etag: str) -> None:
        """This version was met: if a request that is sent from now on finds it, it was there all along."""
        self._seen[key] = etag
        while len(self._seen) > MOST_SEEN:
            self._seen.pop(next(iter(self._seen), ""), None)

    def _list_page(self, folder: str, marker: str) -> Page:
        asked = {"restype": "container", "comp": "list", "prefix": self._root + folder, "maxresults": str(self._page)}
        if marker:
            asked["marker"] = marker
        url = f"{self._container}?{urlencode(asked, quote_via=quote)}"
        outcome = self._http.exchange("GET", url, dict(_FRESH), limit=MAX_PAGE)
        what = f"the listing of {self._root}{folder}"
        answer = self._answered(outcome, what)
        if answer.status == 404 and not marker and answer.code in ("PathNotFound", "BlobNotFound"):
            return Page((), "")  # a store with real folders, and nothing was written to this one yet
        if answer.status != 200:
            raise self._http.refusal(outcome, what)
        return parse_page(answer, self._root, folder)

    def _answered(self, outcome: Outcome, what: str) -> Answer:
        answer = outcome.answer
        if answer is None:
            raise self._http.refusal(outcome, what)
        if "age" in answer.headers:
            raise Unavailable(
                f"{self._http.host} was answered for by a cache, which may be behind.",
                fix="Let requests to it pass the proxy uncached.",
            )
        return answer

    def _check_condition_kept(self, answer: Answer) -> None:
        """A store that says it ignored the condition must not be shared: what it did may have destroyed a version."""
        ignored = answer.headers.get("x-ms-rejected-headers", "").lower()
        if "if-match" in ignored or "if-none-match" in ignored:
            raise Denied(f"{self._http.host} ignores conditions on writes.", fix="Nothing can be shared there.")

    def _unknown(self, what: str, key: str) -> Unknown:
        return Unknown(f"Whether the {what} of {key} at {self._http.host} happened is not known.", fix="Read it again.")

    def _url(self, key: str) -> str:
        return f"{self._container}/{quote(self._root)}{check_key(key)}"


def _condition(condition: Condition) -> dict[str, str]:
    return {"If-None-Match": "*"} if isinstance(condition, Absent) else {"If-Match": f'"{condition.etag}"'}


def _expected(condition: Condition) -> str:
    """The version a write was made from, kept beside it."""
    return "none" if isinstance(condition, Absent) else condition.etag


def _made_by(found: Answer, op: str, body: bytes) -> bool:
    """Is this the version that the write `op` made?

    A store that keeps no metadata leaves the bytes: their own op makes them this write's. A record without one is the
    same whoever wrote it.
    """
    kept = found.headers.get("x-ms-meta-op")
    return kept == op if kept else found.body == body


def _lost(answer: Answer, condition: Condition) -> bool:
    """Was this the answer of a condition that does not hold? A blob under an Azure lease answers 412 too, but isn't."""
    if answer.status == 412:
        return not answer.code.startswith("Lease")
    if isinstance(condition, Absent):
        return answer.status == 409 and answer.code in BLOB_THERE
    return answer.status == 404 and answer.code not in NO_CONTAINER
