"""What only a real server can prove: who is let in, what a page is, what a certificate must be."""

import base64

import azurite
import pytest

from fdagent.errors import Denied, Unavailable
from fdagent.ports import Absent
from fdagent.stores.blobauth import Bearer, SharedKey
from fdagent.stores.blobhttp import open_client
from fdagent.system import SystemClock

pytestmark = pytest.mark.azurite
KEY = "status/a.json"


def test_a_listing_in_pages_is_the_same_as_in_one(http_server):
    """Case 25."""
    container = http_server.new_container()
    store = http_server.store(container)
    keys = [f"requests/r{n:03}.json" for n in range(101)]
    for key in keys:
        store.write(key, b"{}", Absent())
    store.write("status/other.json", b"{}", Absent())
    for size in (1, 7, 100, 101, 5000):
        paged = http_server.store(container, page=size)
        assert [entry.key for entry in paged.list("requests/")] == keys
    # Ages go on between two listings.
    in_pages, in_one = http_server.store(container, page=7).list(""), store.list("")
    assert [(entry.key, entry.etag, entry.size) for entry in in_pages] == [(e.key, e.etag, e.size) for e in in_one]


def test_two_stores_in_one_container_see_only_their_own_folder(http_server):
    container = http_server.new_container()
    one = http_server.store(container, folder="lake/Files/_fabric_desktop")
    other = http_server.store(container, folder="lake/Files/_fabric_desktop_2")
    bare = http_server.store(container, folder="")
    one.write(KEY, b"one", Absent())
    other.write(KEY, b"other", Absent())
    bare.write(KEY, b"bare", Absent())
    assert [store.read(KEY).body for store in (one, other, bare)] == [b"one", b"other", b"bare"]
    assert [[entry.key for entry in store.list("status/")] for store in (one, other, bare)] == [[KEY]] * 3


def test_a_folder_with_a_blank_in_its_name_works_with_key_and_token(http_server, https_server):
    for server in (http_server, https_server):
        store = server.store(server.new_container(), folder="My Lake.Lakehouse/Files/_control")
        store.write(KEY, b"1", Absent())
        assert [entry.key for entry in store.list("status/")] == [KEY]


@pytest.mark.parametrize(
    "token",
    [
        lambda: azurite.bearer_token(lives=-1000),
        lambda: azurite.bearer_token(audience="https://other.example"),
        lambda: "x",
    ],
)
def test_a_token_that_is_expired_or_for_others_is_denied(https_server, token):
    store = https_server.store(https_server.new_container(), auth=Bearer(token))
    for call in (lambda: store.read(KEY), lambda: store.list(""), lambda: store.write(KEY, b"1", Absent())):
        with pytest.raises(Denied):
            call()


def test_a_wrong_key_is_denied(http_server):
    wrong = SharedKey(azurite.ACCOUNT, base64.b64encode(b"wrong").decode(), SystemClock())
    with pytest.raises(Denied):
        http_server.store(http_server.new_container(), auth=wrong).read(KEY)


def test_a_container_that_is_not_there_is_denied_not_empty(http_server):
    store = http_server.store("not-there")
    for call in (lambda: store.read(KEY), lambda: store.list(""), lambda: store.write(KEY, b"1", Absent())):
        with pytest.raises(Denied):
            call()


def test_a_certificate_that_is_not_trusted_is_unavailable_and_says_so(https_server):
    with open_client() as client:
        store = https_server.store(https_server.new_container(), client=client)
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            store.read(KEY)


def test_the_op_of_a_write_and_what_it_was_made_from_are_kept_beside_it(http_server):
    container = http_server.new_container()
    store = http_server.store(container)
    first = store.write(KEY, b"1", Absent())
    answer = store._get(KEY)
    assert len(answer.headers["x-ms-meta-op"]) == 32
    assert answer.headers["x-ms-meta-was"] == "none"
    assert answer.etag == first
