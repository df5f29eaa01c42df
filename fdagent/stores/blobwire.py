"""How a Blob store speaks: etags, dates, waiting times, error codes and listing pages, each as one pure function.

Guarantees: what can't be read as what it should be is an error or an honest None, never a guess; an etag has one form
here, however it came. Written after the REST reference of Azure Storage (version 2023-11-03) and what OneLake and
Azurite were seen to answer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from fdagent.errors import Unavailable
from fdagent.ports import Entry
from fdagent.stores.storeclock import age

BLOB_THERE = frozenset({"", "BlobAlreadyExists", "PathAlreadyExists", "ResourceAlreadyExists"})
"""Codes of a 409 that mean "the blob exists"; an answer may come without a code."""

NO_CONTAINER = frozenset({"ContainerNotFound", "FilesystemNotFound", "WorkspaceNotFound", "ContainerBeingDeleted"})
"""Codes of a 404 or 409 that are not about the blob."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its status, headers and as much of its body as was wanted."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The store's error code, from the header or the body; empty when there is none."""
        return self.headers.get("x-ms-error-code") or _code_in(self.body)

    @property
    def request_id(self) -> str:
        """The store's id of this request: the mark of an answer that is its own."""
        return self.headers.get("x-ms-request-id", "")

    @property
    def etag(self) -> str:
        """The etag, normalised; empty when there is none."""
        return plain_etag(self.headers.get("etag", ""))

    @property
    def date(self) -> float | None:
        """The store's clock when it answered."""
        return http_date(self.headers.get("date", ""))

    @property
    def age(self) -> float | None:
        """Seconds since the blob was written, both times by the store's clock."""
        date, written = self.date, http_date(self.headers.get("last-modified", ""))
        return None if date is None or written is None else age(date, written)

    @property
    def retry_after(self) -> float | None:
        """Seconds the store asks to wait, from a number or a date; None when it doesn't, or not readably."""
        text = self.headers.get("retry-after", "").strip()
        try:
            seconds = float(text)
        except ValueError:
            until = http_date(text)
            if until is None or self.date is None:
                return None
            seconds = until - self.date
        return max(seconds, 0.0) if math.isfinite(seconds) else None


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing; `marker` asks for the next, empty at the end."""

    entries: tuple[Entry, ...]
    marker: str


def plain_etag(text: str) -> str:
    """One form for every etag: `"0x1"`, `0x1` and `W/"0x1"` are the same version."""
    return text.strip().removeprefix("W/").strip('"')


def http_date(text: str) -> float | None:
    """Epoch seconds of an HTTP date, or None; one without a time zone means nothing."""
    try:
        date = parsedate_to_datetime(text)
        return date.timestamp() if date.tzinfo is not None else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def parse_page(answer: Answer, root: str, prefix: str) -> Page:
    """Read one page of a flat listing.

    Args:
        answer: The store's answer.
        root: What stands before every key in a blob's name.
        prefix: What was asked for.

    Raises:
        Unavailable: It isn't a whole page about that; a listing is never cut short.
    """
    try:
        # Comes over TLS from the store asked; expat bounds entity expansion.
        page = ET.fromstring(answer.body)  # noqa: S314
    except ET.ParseError as error:
        raise Unavailable(
            f"A listing of {prefix} is not whole XML.", fix="Something cut it short: try again."
        ) from error
    if page.tag != "EnumerationResults":
        raise Unavailable(f"A listing of {prefix} was answered with something else.", fix="Is a proxy in between?")
    found = (_entry(blob, answer.date, root, prefix) for blob in page.iterfind("Blobs/Blob"))
    return Page(tuple(entry for entry in found if entry is not None), page.findtext("NextMarker") or "")


def _entry(blob: ET.Element, date: float | None, root: str, prefix: str) -> Entry | None:
    """One blob; None for a folder, which a store with real folders lists between them."""
    name = blob.find("Name")
    text = "" if name is None else name.text or ""
    if name is not None and name.get("Encoded") == "true":
        text = unquote(text)
    if not text.startswith(root + prefix):
        raise Unavailable(
            f"A listing of {prefix} names a blob outside of it.", fix="Use ids instead of names in the URL."
        )
    if blob.findtext("Properties/ResourceType") == "directory" or text.endswith("/"):
        return None
    if blob.findtext("Metadata/hdi_isfolder") == "true":
        return None
    etag, size = plain_etag(blob.findtext("Properties/Etag") or ""), blob.findtext("Properties/Content-Length") or ""
    if not etag or not size.isdecimal():
        raise Unavailable(f"A listing of {prefix} lacks the etag or size of a blob.", fix="Try again.")
    written = http_date(blob.findtext("Properties/Last-Modified") or "")
    old = None if date is None or written is None else age(date, written)
    return Entry(text.removeprefix(root), etag, old, int(size))


def _code_in(body: bytes) -> str:
    if b"<Code>" not in body:
        return ""
    try:
        return ET.fromstring(body).findtext("Code") or ""  # noqa: S314 - as in parse_page
    except ET.ParseError:
        return ""
