"""One request to a Blob store, tried again within bounds, and what may have become of it.

Guarantees: an outcome says whether an earlier try may have been carried out (`unclear`), so that nobody takes a refusal
of the second try for a refusal of both. What the store asks to wait (`Retry-After`) is waited for up to
PATIENCE_SECONDS, else handed on; no further try begins after CALL_SECONDS. No secret stands in any error: texts of the
HTTP library are quoted only where they hold nothing of the request. Does not guarantee that a try given up here never
arrives.
"""

import logging
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from fdagent.errors import Denied, FdagentError, Unavailable
from fdagent.ports import Clock, Ids
from fdagent.stores.blobauth import Auth
from fdagent.stores.blobwire import NO_CONTAINER, Answer
from fdagent.stores.storeclock import StoreClock, skew

VERSION = "2023-11-03"
TRIES = 4
CONNECT_SECONDS = 5.0
TRY_SECONDS = 20.0
"""How long one try waits for the next bytes."""
ANSWER_SECONDS = 60.0
"""How long one answer may take from its request to its last byte, however steadily it drips."""
CALL_SECONDS = 60.0
"""No further try begins after this long."""
BACKOFF_SECONDS = 0.2
"""The first pause between tries at most; it doubles, and is jittered down to a half."""
PATIENCE_SECONDS = 15.0
"""The longest `Retry-After` that is waited for within a call."""

_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_QUOTABLE = (httpx.ConnectError, httpx.ReadError, httpx.WriteError)
"""Errors whose text comes from the system. A protocol error may quote a header, the token among them."""


def open_client(*, verify: ssl.SSLContext | bool = True, try_seconds: float = TRY_SECONDS) -> httpx.Client:
    """An HTTP client for stores; it may serve several, from several threads. The caller closes it.

    Args:
        verify: The certificates to trust; True: those of httpx, or of SSL_CERT_FILE.
        try_seconds: How long one try waits for the next bytes.
    """
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)  # below that they log every URL
    return httpx.Client(verify=verify, timeout=httpx.Timeout(try_seconds, connect=min(CONNECT_SECONDS, try_seconds)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call.

    Attributes:
        answer: The first answer that settles it; None when no try got one.
        unclear: An earlier try of it may have been carried out, or may still be.
        trouble: Why there is no answer.
    """

    answer: Answer | None
    unclear: bool
    trouble: FdagentError | None = None


class BlobHttp:
    """Sends requests to one store.

    Args:
        url: Any URL of the store.
        auth: Who asks.
        clock: This machine's clocks.
        ids: The jitter of waits.
        client: From `open_client`.
    """

    def __init__(self, url: str, *, auth: Auth, clock: Clock, ids: Ids, client: httpx.Client) -> None:
        self.host = urlsplit(url).hostname or ""
        self.store_clock = StoreClock(clock)
        self._auth = auth
        self._clock = clock
        self._ids = ids
        self._client = client

    def exchange(self, method: str, url: str, headers: dict[str, str], body: bytes = b"", *, limit: int) -> Outcome:
        """Send until an answer settles it.

        Args:
            method: HTTP method.
            url: The blob's or container's.
            headers: The headers of this request; version, identity and length are added.
            body: What to send.
            limit: Bytes of the answer's body that are read.

        Raises:
            FdagentError: No identity could be proved; nothing was sent.
        """
        unclear, end = False, self._clock.elapsed() + CALL_SECONDS
        for tried in range(1, TRIES + 1):
            wait = 0.0
            try:
                answer = self._send(method, url, headers, body, limit)
            except httpx.RequestError as error:
                unclear = unclear or not isinstance(error, _NEVER_SENT)
                trouble: FdagentError = self._unreachable(error)
            except FdagentError as error:
                if not unclear:
                    raise
                return Outcome(None, unclear, error)
            else:
                if answer.status not in _RETRIED:
                    return Outcome(answer, unclear)
                unclear, wait = True, answer.retry_after or 0.0
                trouble = Unavailable(f"{self.host} answered {_status(answer)}.", retry_after=answer.retry_after)
            pause = max(BACKOFF_SECONDS * 2 ** (tried - 1) * (0.5 + self._ids.fraction() / 2), wait)
            if tried == TRIES or pause > PATIENCE_SECONDS or self._clock.elapsed() + pause > end:
                break
            self._clock.sleep(pause)
        return Outcome(None, unclear, trouble)

    def refusal(self, outcome: Outcome, what: str) -> FdagentError:
        """The error for an outcome that is neither success nor a lost condition."""
        answer = outcome.answer
        if answer is None:
            return outcome.trouble or Unavailable(f"{self.host} gave no answer for {what}.")
        said = f"{self.host} answered {_status(answer)} for {what}."
        if answer.status in (401, 403):
            offset = skew(self.store_clock.offset())
            fix = offset.sentence if offset else "Give this identity the right to read and write there."
            return Denied(said, fix=fix)
        if answer.code in NO_CONTAINER:
            return Denied(said, fix="The workspace's id is wrong, or this identity may not see it.")
        return Unavailable(said, retry_after=answer.retry_after)

    def _send(self, method: str, url: str, headers: dict[str, str], body: bytes, limit: int) -> Answer:
        """One request and its answer."""
        # An answer packed on its way could come with an etag changed on its way.
        whole = {"x-ms-version": VERSION, "Accept-Encoding": "identity", "Content-Length": str(len(body)), **headers}
        if method == "GET":
            del whole["Content-Length"]
        self._auth.sign(method, url, whole)
        asked = self._clock.elapsed()
        with self._client.stream(method, url, headers=whole, content=body or None) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size >= limit:
                    break
                if self._clock.elapsed() - asked > ANSWER_SECONDS:
                    raise httpx.ReadTimeout(f"an answer took over {ANSWER_SECONDS:.0f} s")
            answer = Answer(response.status_code, response.headers, b"".join(parts)[:limit])
        if answer.date is not None and "age" not in answer.headers:
            self.store_clock.observe(answer.date, asked)
        return answer

    def _unreachable(self, error: httpx.RequestError) -> Unavailable:
        text = str(error) if isinstance(error, _QUOTABLE) else ""
        return Unavailable(
            f"{self.host} gave no answer: {text or type(error).__name__}.",
            fix="See that this machine reaches it (proxy, firewall, certificates).",
        )


def _status(answer: Answer) -> str:
    return f"{answer.status} {answer.code[:80]}".strip()
