"""Who asks a Blob store, and what is never said about it."""

import logging
import ssl

import httpx
import pytest
from blobfake import CANARY, KEY, URL, Fake, says, there
from storefakes import CountingIds, HandClock

from fdagent.errors import ConfigError, Denied, FdagentError, Unknown
from fdagent.ports import Absent, Match
from fdagent.stores.blob import BlobStore
from fdagent.stores.blobauth import Bearer, SharedKey
from fdagent.stores.blobhttp import open_client


def test_a_token_is_asked_for_anew_for_each_request():
    """Case 27."""
    tokens = iter(["t1", "t2", "t3", "t4"])
    fake = Fake(says(500), says(201, etag='"1"'), there(), auth=Bearer(lambda: next(tokens)))
    fake.store.write(KEY, b"1", Absent())
    fake.store.read(KEY)
    assert [request.headers["authorization"] for request in fake.requests] == ["Bearer t1", "Bearer t2", "Bearer t3"]


def test_a_token_that_can_not_be_had_stops_before_anything_is_sent_and_leaves_a_sent_write_unknown():
    def none():
        raise Denied("The identity has expired.")

    fake = Fake(auth=Bearer(none))
    with pytest.raises(Denied):
        fake.store.write(KEY, b"1", Absent())
    tokens = iter([CANARY])
    fake = Fake(says(500), auth=Bearer(lambda: next(tokens, None) or none()))
    with pytest.raises(Unknown):
        fake.store.write(KEY, b"1", Absent())


def test_a_token_never_goes_out_without_tls():
    ids = CountingIds()
    with httpx.Client(transport=httpx.MockTransport(lambda request: says(200))) as client:
        store = BlobStore(
            "http://x.example/c", "", auth=Bearer(lambda: CANARY), clock=HandClock(), ids=ids, client=client
        )
        with pytest.raises(ConfigError):
            store.read(KEY)


@pytest.mark.parametrize("token", [CANARY + "\n", CANARY + "\r\nx: y", "", CANARY + "é", "\0" + CANARY])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(token):
    with pytest.raises(Denied) as caught:
        Fake(auth=Bearer(lambda: token)).store.read(KEY)
    assert CANARY not in everything(caught.value)


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.LocalProtocolError(f"Illegal header value b'Bearer {CANARY}'"),
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ReadTimeout("timed out"),
        httpx.DecodingError("bad gzip"),
        httpx.ProxyError(f"407 {CANARY}"),
        says(403, b"<Error><Code>AuthenticationFailed</Code><Message>" + CANARY.encode() + b"</Message></Error>"),
        says(400, x_ms_error_code="x" * 10_000),
        says(503),
    ],
)
@pytest.mark.parametrize("call", ["read", "list", "write", "delete"])
def test_no_error_and_no_log_shows_a_secret(trouble, call, caplog):
    caplog.set_level(logging.DEBUG)
    open_client().close()
    fake = Fake(*[trouble] * 20)
    with pytest.raises(FdagentError) as caught:
        {
            "read": lambda: fake.store.read(KEY),
            "list": lambda: fake.store.list("status/"),
            "write": lambda: fake.store.write(KEY, b"1", Absent()),
            "delete": lambda: fake.store.delete(KEY, Match("0x1")),
        }[call]()
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)
    assert len(str(caught.value)) < 400
    assert URL not in caplog.text
    assert CANARY not in caplog.text


def everything(error):
    return f"{error} {error!r} {error.__cause__!r} {error.__context__!r}"


def test_no_secret_is_in_a_repr():
    bearer, key = Bearer(lambda: CANARY), SharedKey("acct", "c2VjcmV0LWtleQ==", HandClock())
    assert "secret-key" not in repr(key) + str(key)
    assert CANARY not in repr(bearer)


def test_a_shared_key_signs_what_azure_says_it_must():
    """The string to sign of Azure Storage's "Authorize with Shared Key", spelled out for one request."""
    auth = SharedKey("acct", "c2VjcmV0", HandClock(epoch=0.0))
    headers = {"Content-Length": "3", "If-Match": '"0x1"', "x-ms-version": "2023-11-03", "x-ms-meta-op": "a  b"}
    assert auth._text("PUT", "https://h/c/lake%20x/a.json?b=2%20&A=1", {n.lower(): v for n, v in headers.items()}) == (
        'PUT\n\n\n3\n\n\n\n\n"0x1"\n\n\n\nx-ms-meta-op:a b\nx-ms-version:2023-11-03\n/acct/c/lake%20x/a.json\na:1\nb:2 '
    )
    auth.sign("PUT", "https://h/c/x", headers)
    assert headers["x-ms-date"] == "Thu, 01 Jan 1970 00:00:00 GMT"
    assert headers["Authorization"].startswith("SharedKey acct:")


def test_a_client_trusts_what_it_is_told_to(tmp_path):
    context = ssl.create_default_context()
    with open_client(verify=context, try_seconds=3) as client:
        assert client.timeout == httpx.Timeout(3, connect=3)
        assert not client.follow_redirects
