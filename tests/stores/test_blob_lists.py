"""Listings of a Blob store: every page or an error, folders left out."""

import itertools
from email.utils import formatdate

import pytest
from blobfake import NOW, Fake, refused, says

from fdagent.errors import Denied, Unavailable
from fdagent.stores.blobhttp import TRIES


def blob(name, etag="0x1", size="2", extra="", encoded=""):
    return (
        f"<Blob><Name{encoded}>{name}</Name><Properties><Last-Modified>{formatdate(NOW - 5, usegmt=True)}</Last-Modified>"
        f"<Etag>{etag}</Etag><Content-Length>{size}</Content-Length>{extra}</Properties></Blob>"
    )


def page(*blobs, marker=""):
    body = f"<EnumerationResults><Blobs>{''.join(blobs)}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
    return says(
        200,
        b"\xef\xbb\xbf" + f'<?xml version="1.0" encoding="utf-8"?>{body}'.encode(),
        date=formatdate(NOW, usegmt=True),
    )


def test_a_listing_of_more_than_5000_follows_every_page_and_encodes_the_marker():
    """Case 25."""
    names = [f"lake/Files/requests/r{n:05}.json" for n in range(5003)]
    marker = "2!92!MDAw&=/+ %"
    fake = Fake(page(*map(blob, names[:5000]), marker=marker.replace("&", "&amp;")), page(*map(blob, names[5000:])))
    entries = fake.store.list("requests/")
    assert [entry.key for entry in entries] == [name.removeprefix("lake/Files/") for name in names]
    assert {(entry.etag, entry.age, entry.size) for entry in entries} == {("0x1", 5.0, 2)}
    assert dict(fake.requests[0].url.params)["maxresults"] == "5000"
    assert dict(fake.requests[1].url.params)["marker"] == marker
    assert b"%2F%2B%20%25" in fake.requests[1].url.query


@pytest.mark.parametrize(
    "second",
    [
        says(500),
        refused(403),
        refused(404, "PathNotFound"),
        says(200, b"<EnumerationResults><Blobs>"),
        says(200, b""),
        says(200, b"<html></html>"),
        page(blob("lake/Files/requests/b.json"), marker="m1"),
    ],
)
def test_a_listing_whose_second_page_fails_is_an_error_never_a_short_answer(second):
    fake = Fake(page(blob("lake/Files/requests/a.json"), marker="m1"), *[second] * TRIES)
    with pytest.raises((Unavailable, Denied)):
        fake.store.list("requests/")


@pytest.mark.parametrize(
    "odd",
    [
        blob("lake/Files/requests/a.json", etag=""),
        blob("lake/Files/requests/a.json", size="many"),
        blob("lake/Files/requests/a.json", size=""),
        blob("Other Lake/Files/requests/a.json"),
        "<Blob><Properties/></Blob>",
    ],
)
def test_a_listing_with_an_entry_that_can_not_be_read_is_an_error(odd):
    with pytest.raises(Unavailable):
        Fake(page(blob("lake/Files/requests/b.json"), odd)).store.list("requests/")


def test_folders_among_the_blobs_are_not_records():
    directory = "<ResourceType>directory</ResourceType>"
    fake = Fake(
        page(
            blob("lake/Files/requests/sub", size="0", extra=directory),
            blob("lake/Files/requests/other/", size="0"),
            blob("lake/Files/requests/old", size="0").replace(
                "</Blob>", "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
            ),
            blob("lake/Files/requests/a.json", etag="&quot;0x5&quot;", extra="<ResourceType>file</ResourceType>"),
            blob("lake/Files/requests/b%20c.json", encoded=' Encoded="true"'),
        )
    )
    assert [(e.key, e.etag) for e in fake.store.list("requests/")] == [
        ("requests/a.json", "0x5"),
        ("requests/b c.json", "0x1"),
    ]


def test_a_listing_asks_for_the_folder_and_picks_the_beginning_of_a_name_itself():
    """OneLake lists folders; what it makes of half a name is not known."""
    fake = Fake(page(blob("lake/Files/status/ab.json"), blob("lake/Files/status/b.json")))
    assert [entry.key for entry in fake.store.list("status/a")] == ["status/ab.json"]
    assert dict(fake.requests[0].url.params)["prefix"] == "lake/Files/status/"


def test_a_folder_that_does_not_exist_yet_lists_as_empty_and_a_container_that_does_not_is_denied():
    assert list(Fake(refused(404, "PathNotFound")).store.list("status/")) == []
    with pytest.raises(Denied):
        Fake(refused(404, "ContainerNotFound")).store.list("status/")


def test_a_listing_that_never_ends_is_given_up():
    numbers = itertools.count()
    fake = Fake(*[lambda _: page(marker=f"m{next(numbers)}")] * 1001)
    with pytest.raises(Unavailable, match="does not end"):
        fake.store.list("status/")
    assert len(fake.requests) == 1000
