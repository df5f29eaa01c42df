"""The Blob client against answers that a real store gives seldom: every form, every odd code, every hint to wait."""

import itertools
from email.utils import formatdate

import httpx
import pytest
from blobfake import KEY, NOW, Fake, refused, says, there

from fdagent.errors import Conflict, Denied, Unavailable, Unknown
from fdagent.ports import Absent, Match
from fdagent.stores import blob
from fdagent.stores.blobhttp import CALL_SECONDS, PATIENCE_SECONDS, TRIES

PAGE = "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>"


@pytest.mark.parametrize("form", ['"0x8D"', "0x8D", 'W/"0x8D"', ' "0x8D" '])
def test_every_form_of_an_etag_is_one_version_and_goes_back_quoted(form):
    """Case 3."""
    fake = Fake(says(201, etag=form), there(etag=form), says(201, etag='"0x8E"'), says(202))
    assert fake.store.write(KEY, b"1", Absent()) == "0x8D"
    assert fake.store.read(KEY).etag == "0x8D"
    fake.store.write(KEY, b"2", Match("0x8D"))
    fake.store.delete(KEY, Match("0x8E"))
    assert fake.requests[0].headers["if-none-match"] == "*"
    assert [request.headers.get("if-match") for request in fake.requests] == [None, None, '"0x8D"', '"0x8E"']


@pytest.mark.parametrize(
    "answer", [refused(409, "BlobAlreadyExists"), refused(412, "ConditionNotMet"), refused(409), refused(412)]
)
def test_a_refused_create_of_a_record_that_was_there_before_is_a_conflict(answer):
    fake = Fake(there(op="theirs"), answer, there(op="theirs", x_ms_meta_was="none"))
    fake.store.read(KEY)
    with pytest.raises(Conflict):
        fake.store.write(KEY, b"1", Absent())


@pytest.mark.parametrize("before", [None, "0x0"])
def test_a_refused_create_of_a_record_that_came_meanwhile_is_unknown(before):
    """A proxy may have sent it twice: the first one landed, others deleted what it made, and made the record anew."""
    fake = Fake(
        *([there(etag=f'"{before}"')] if before else []), refused(412), there(op="theirs", x_ms_meta_was="none")
    )
    if before:
        fake.store.read(KEY)
    with pytest.raises(Unknown):
        fake.store.write(KEY, b"1", Absent())


def test_no_more_versions_are_remembered_than_have_a_bound(monkeypatch):
    monkeypatch.setattr(blob, "MOST_SEEN", 3)
    fake = Fake(*[there() for _ in range(9)])
    for n in range(9):
        fake.store.read(f"status/r{n}.json")
    assert list(fake.store._seen) == ["status/r6.json", "status/r7.json", "status/r8.json"]


def test_a_refusal_of_a_write_that_a_proxy_sent_twice_is_recognised_as_won():
    fake = Fake(refused(412, "ConditionNotMet"), there(op="op1", etag='"0x7"'))
    assert fake.store.write(KEY, b"1", Match("0x1")) == "0x7"


def test_a_refusal_is_a_conflict_where_what_is_there_was_made_from_the_same_version():
    fake = Fake(refused(412), there(op="theirs", x_ms_meta_was="0x1"))
    with pytest.raises(Conflict):
        fake.store.write(KEY, b"1", Match("0x1"))


def test_a_refusal_is_a_conflict_where_what_is_there_is_older_than_the_request():
    fake = Fake(
        refused(412), there(date=formatdate(1_000_060, usegmt=True), last_modified=formatdate(1_000_000, usegmt=True))
    )
    with pytest.raises(Conflict):
        fake.store.write(KEY, b"1", Match("0x1"))


@pytest.mark.parametrize(
    "found",
    [
        there(op="theirs", x_ms_meta_was="0x2"),  # may have been made from what the first sending of this write made
        there(date=formatdate(1_000_001, usegmt=True), last_modified=formatdate(1_000_000, usegmt=True)),
        refused(404, "BlobNotFound"),
        refused(403, "AuthorizationFailure"),
    ],
)
def test_a_refusal_without_proof_that_nothing_landed_is_unknown(found):
    fake = Fake(refused(412), found)
    with pytest.raises(Unknown):
        fake.store.write(KEY, b"1", Match("0x1"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refused(412, "LeaseIdMissing"), Unavailable),
        (refused(409, "BlobOperationNotSupported"), Unavailable),
        (refused(409, "ContainerBeingDeleted"), Denied),
        (refused(404, "ContainerNotFound"), Denied),
        (refused(404, "WorkspaceNotFound"), Denied),
        (refused(401, "InvalidAuthenticationInfo"), Denied),
        (refused(403, "AuthorizationPermissionMismatch"), Denied),
        (refused(400, "InvalidHeaderValue"), Unavailable),
        (refused(302), Unavailable),
    ],
)
@pytest.mark.parametrize("change", ["create", "replace", "delete"])
def test_a_refusal_that_is_not_about_the_condition_is_no_conflict(answer, expected, change):
    fake = Fake(answer)
    with pytest.raises(expected) as caught:
        {
            "create": lambda: fake.store.write(KEY, b"1", Absent()),
            "replace": lambda: fake.store.write(KEY, b"1", Match("0x1")),
            "delete": lambda: fake.store.delete(KEY, Match("0x1")),
        }[change]()
    assert type(caught.value) is expected
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    "lost", [httpx.ReadTimeout("x"), httpx.RemoteProtocolError("x"), says(500), says(503), says(408), says(429)]
)
@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        ([says(201, etag='"0x9"')], "0x9"),  # the second try landed
        ([refused(412), there(op="op1", etag='"0x9"')], "0x9"),  # the first had
        ([refused(412), there(op="theirs", x_ms_meta_was="0x1")], Unknown),
        ([refused(412), refused(404, "BlobNotFound")], Unknown),
        ([refused(403)], Unknown),  # refused now; the first may have landed
        ([says(500)] * (TRIES - 1) + [there(op="op1", etag='"0x9"')], "0x9"),
        ([says(500)] * (TRIES - 1) + [there(op="before", etag='"0x1"')], Unknown),  # it may still land
        ([says(500)] * (TRIES - 1) + [says(500)] * TRIES, Unknown),
    ],
)
def test_after_a_lost_answer_only_an_own_version_is_success_and_nothing_is_a_conflict(lost, then, outcome):
    """Case 1 and the facts' table of ambiguous writes."""
    fake = Fake(lost, *then, *[refused(404, "BlobNotFound")] * 2)
    if outcome is Unknown:
        with pytest.raises(Unknown):
            fake.store.write(KEY, b"1", Match("0x1"))
    else:
        assert fake.store.write(KEY, b"1", Match("0x1")) == outcome
    ops = {request.headers["x-ms-meta-op"] for request in fake.requests if request.method == "PUT"}
    assert ops == {"op1"}, "one op for all tries of one write"


def test_without_metadata_the_bytes_tell_whose_version_it_is():
    mine = b'{"op": "7"}'
    assert Fake(says(500), refused(412), there(body=mine, etag='"0x9"')).store.write(KEY, mine, Match("0x1")) == "0x9"
    with pytest.raises(Unknown):
        Fake(says(500), refused(412), there(body=b'{"op": "8"}')).store.write(KEY, mine, Match("0x1"))


def test_a_stored_answer_without_an_etag_is_read_back():
    assert Fake(says(201), there(op="op1", etag='"0x5"')).store.write(KEY, b"1", Absent()) == "0x5"


@pytest.mark.parametrize("again", [refused(412, "ConditionNotMet"), refused(404, "BlobNotFound"), refused(403)])
def test_a_delete_refused_after_a_lost_answer_is_unknown(again):
    with pytest.raises(Unknown):
        Fake(httpx.ReadTimeout("x"), again).store.delete(KEY, Match("0x1"))


def test_a_delete_carried_out_by_the_second_try_is_done():
    Fake(says(503), says(202)).store.delete(KEY, Match("0x1"))


def test_a_refused_delete_of_what_is_gone_is_unknown_and_of_a_newer_version_a_conflict():
    with pytest.raises(Unknown):
        Fake(refused(412), refused(404, "BlobNotFound")).store.delete(KEY, Match("0x1"))
    with pytest.raises(Conflict):
        Fake(refused(412), there(x_ms_meta_was="0x1")).store.delete(KEY, Match("0x1"))


def test_a_write_that_never_left_is_unavailable_not_unknown():
    with pytest.raises(Unavailable) as caught:
        Fake(*[httpx.ConnectError("refused")] * TRIES).store.write(KEY, b"1", Absent())
    assert "refused" in str(caught.value)


@pytest.mark.parametrize("ignored", ["If-Match", "x-ms-meta-op, if-none-match"])
def test_a_store_that_says_it_ignored_the_condition_is_refused(ignored):
    fake = Fake(says(201, etag='"1"', x_ms_rejected_headers=ignored))
    with pytest.raises(Denied, match="ignores conditions"):
        fake.store.write(KEY, b"1", Match("0x1"))


def test_reads_ask_for_no_cached_answer_and_refuse_one():
    fake = Fake(there(age="0"), says(200, PAGE.encode(), age="7"), there())
    with pytest.raises(Unavailable, match="cache"):
        fake.store.read(KEY)
    with pytest.raises(Unavailable, match="cache"):
        fake.store.list("status/")
    assert fake.store.read(KEY).body == b"{}"
    assert [request.headers["cache-control"] for request in fake.requests] == ["no-cache"] * 3


@pytest.mark.parametrize(
    "answer",
    [
        says(200, b"<html>Please sign in</html>"),  # a captive portal: no etag
        httpx.Response(404, content=b"<html>nginx</html>"),  # some other server's 404
        says(206, b"{}", etag='"1"'),
        says(304, etag='"1"'),
        says(301, location="https://elsewhere.example"),
    ],
)
def test_an_answer_that_is_not_the_stores_is_neither_a_record_nor_the_lack_of_one(answer):
    with pytest.raises(Unavailable):
        Fake(answer).store.read(KEY)


def test_ages_and_the_offset_are_by_the_stores_clock():
    clock_now = 1_800_000_000.0 + 300
    fake = Fake(there(date=formatdate(clock_now, usegmt=True), last_modified=formatdate(clock_now - 45, usegmt=True)))
    assert fake.store.clock_offset() is None
    assert fake.store.read(KEY).age == 45
    assert fake.store.clock_offset() == pytest.approx(300.5)


@pytest.mark.parametrize(
    "headers",
    [{}, {"date": "yesterday"}, {"last_modified": formatdate(1_900_000_000, usegmt=True)}, {"last_modified": ""}],
)
def test_an_age_that_can_not_be_told_is_unknown(headers):
    whole = {"date": formatdate(1_800_000_000, usegmt=True)} | headers
    assert Fake(there(**whole)).store.read(KEY).age is None


def test_a_refusal_says_how_far_this_machines_clock_is_off():
    """Case 29."""
    late = formatdate(1_800_000_000 + 1800, usegmt=True)
    with pytest.raises(Denied, match=r"clock is 30 min 00 s behind"):
        Fake(says(403, date=late)).store.read(KEY)
    with pytest.raises(Denied, match="Give this identity the right"):
        Fake(refused(403, "AuthenticationFailed")).store.read(KEY)


PAUSE = 0.2 * 0.75


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({}, PAUSE),
        ({"retry_after": "3"}, 3),
        ({"retry_after": "0"}, PAUSE),
        ({"retry_after": "2.5"}, 2.5),
        ({"retry_after": formatdate(NOW + 4, usegmt=True), "date": formatdate(NOW, usegmt=True)}, 4),
        ({"retry_after": formatdate(NOW - 4, usegmt=True), "date": formatdate(NOW, usegmt=True)}, PAUSE),
        ({"retry_after": formatdate(NOW + 4, usegmt=True), "date": formatdate(NOW - 10**6, usegmt=True)}, None),
        ({"retry_after": formatdate(NOW + 4, usegmt=True)}, PAUSE),  # nothing to compare it with
        ({"retry_after": "soon"}, PAUSE),
        ({"retry_after": "-5"}, PAUSE),
        ({"retry_after": "nan"}, PAUSE),
        ({"retry_after": "inf"}, PAUSE),
        ({"retry_after": "100000"}, None),
        ({"retry_after": str(PATIENCE_SECONDS)}, PATIENCE_SECONDS),
    ],
)
def test_what_the_store_asks_to_wait_is_waited_within_bounds_or_handed_on(headers, waited):
    fake = Fake(says(503, **headers), there())
    if waited is None:
        with pytest.raises(Unavailable) as caught:
            fake.store.read(KEY)
        assert caught.value.retry_after > PATIENCE_SECONDS
        assert fake.clock.slept == []
    else:
        fake.store.read(KEY)
        assert fake.clock.slept == [pytest.approx(waited)]


def test_pauses_grow_and_tries_and_time_are_bounded():
    fake = Fake(*[says(503)] * 10)
    with pytest.raises(Unavailable, match="503"):
        fake.store.read(KEY)
    assert fake.clock.slept == [pytest.approx(PAUSE * 2**n) for n in range(TRIES - 1)]
    slow = Fake(*[lambda _: slow.clock.move(CALL_SECONDS / 2) or says(503) for _ in range(10)])
    with pytest.raises(Unavailable):
        slow.store.read(KEY)
    assert len(slow.requests) == 2


def test_an_answer_that_drips_for_ever_is_given_up():
    fake = Fake(*[lambda _: httpx.Response(200, content=drip(), headers={"etag": '"1"'}) for _ in range(TRIES)])

    def drip():
        for _ in itertools.repeat(None):
            fake.clock.move(10)
            yield b"x"

    with pytest.raises(Unavailable, match="ReadTimeout"):
        fake.store.read(KEY)


def test_a_record_is_read_up_to_one_byte_more_than_allowed():
    fake = Fake(there(body=b"x" * 5_000_000))
    assert len(fake.store.read(KEY).body) == 256 * 1024 + 1
