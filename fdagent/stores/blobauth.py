"""Who asks: a bearer token (OneLake) or a shared key (Azurite).

Guarantees: a token is asked for anew for each request, so that one that was refreshed is used at once; it goes over TLS
only; no secret stands in a repr or in an error of ours. The shared key signs as Azure Storage's "Authorize with Shared
Key" says for Blob versions from 2015-02-21 on.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, MutableMapping
from email.utils import formatdate
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from fdagent.errors import ConfigError, Denied
from fdagent.ports import Clock

_SIGNED = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)
"""The headers whose values stand in the string to sign, in this order."""


class Auth(Protocol):
    """Adds to a request's headers what proves who asks."""

    def sign(self, method: str, url: str, headers: MutableMapping[str, str]) -> None:
        """Called once for each request, its other headers complete. Raises what getting a token raises."""
        ...


class Bearer:
    """A token of Microsoft Entra.

    Args:
        token: Answers a token that is valid now.
    """

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def sign(self, method: str, url: str, headers: MutableMapping[str, str]) -> None:  # noqa: ARG002 - the port's
        """Add the token of this moment."""
        if urlsplit(url).scheme != "https":
            raise ConfigError("A token must not be sent without TLS.", fix="Give the store an https URL.")
        token = self._token()
        if not token.isascii() or not token.isprintable() or not token:
            # The HTTP library would show a header it can't send.
            raise Denied("The identity gave a token that no header can carry.", fix="Sign in again.")
        headers["Authorization"] = f"Bearer {token}"


class SharedKey:
    """An account's key.

    Args:
        account: The account's name.
        key: Its key in base64.
        clock: For the signature's date.
    """

    def __init__(self, account: str, key: str, clock: Clock) -> None:
        self._account = account
        self._key = base64.b64decode(key)
        self._clock = clock

    def sign(self, method: str, url: str, headers: MutableMapping[str, str]) -> None:
        """Add the date and the signature."""
        headers["x-ms-date"] = formatdate(self._clock.wall(), usegmt=True)
        text = self._text(method, url, {name.lower(): value for name, value in headers.items()})
        signature = base64.b64encode(hmac.new(self._key, text.encode(), hashlib.sha256).digest()).decode()
        headers["Authorization"] = f"SharedKey {self._account}:{signature}"

    def _text(self, method: str, url: str, headers: Mapping[str, str]) -> str:
        values = [headers.get(name, "") for name in _SIGNED]
        length = _SIGNED.index("content-length")
        values[length] = "" if values[length] == "0" else values[length]
        own = [f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers) if name.startswith("x-ms-")]
        where = urlsplit(url)
        asked = sorted((name.lower(), value) for name, value in parse_qsl(where.query, keep_blank_values=True))
        resource = [f"/{self._account}{where.path}", *(f"{name}:{value}" for name, value in asked)]
        return "\n".join([method, *values, *own, *resource])
