"""Records as JSON: kept whole, read with suspicion, and understood by the contract's first version and of it."""

import contextlib
from dataclasses import field, make_dataclass, replace
from typing import Annotated

import pytest
from generated import made
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdagent.errors import BadRecord, NewerContract
from machines.registry import ENTRIES
from models.agent import AgentRecord, AgentState
from models.codec import dump, parse
from models.incident import Incident
from models.jsonrecord import JsonPart, JsonRecord, Later, declared
from models.lease import Lease
from models.ledger import Ledger
from models.liveness import Liveness, liveness
from models.slot import Request
from models.status import RequestState, Status, TableResult
from models.wish import Wish

RECORDS = [entry.record for entry in ENTRIES if entry.record is not None]
WHOLE = [record for record in RECORDS if issubclass(record, JsonRecord)]
EACH = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.WHAT)
EACH_WHOLE = pytest.mark.parametrize("record", WHOLE, ids=lambda record: record.WHAT)
MANY = settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
PUBLISHED = {
    Request: "entities cascade backfill deadline submitted_by submitted_at schedule slot due_at",
    Status: "id env state op agent instance host agents job_id attempt accepted_at started_at updated_at finished_at "
    "deadline offered entities tables run_ids rows_written error category reason taken_over_from taken_over_at",
    TableResult: "entity state run_id rows_read rows_written quarantined by error",
    Lease: "table op agent instance host boot pid process_started_at job_id request_id acquired_at renewed_at "
    "expires_at seconds",
    AgentRecord: "name instance op host boot pid process_started_at os version state started_at heartbeat_at "
    "stale_after grace_seconds status_seconds env metadata_version owner identity credential concurrency running queue "
    "schedules pipeline incidents clock_offset_seconds",
    Incident: "id op key kind workload name env title text evidence state opened_at last_seen_at occurrences opened_by "
    "owner team criticality classification escalated_at escalated_to acknowledged_by acknowledged_at resolved_by "
    "resolved_at resolution announced notes",
    Ledger: "op updated_at incidents",
}


@pytest.mark.parametrize("record", PUBLISHED, ids=lambda record: record.WHAT)
def test_a_record_has_exactly_the_published_fields(record):
    beyond = {"op"} if record is Request else set()
    assert {told.name for told in declared(record)} == set(PUBLISHED[record].split()) | beyond


@EACH
@MANY
@given(data=st.data())
def test_a_record_written_and_read_is_the_same_through_bytes_too(record, data):
    value = data.draw(made(record))
    assert record.from_json(value.to_json()) == value
    assert record.from_json(parse(dump(value.to_json()))) == value


@EACH
@MANY
@given(data=st.data())
def test_fields_that_are_not_known_are_kept_in_the_record_and_in_its_parts(record, data):
    shape = data.draw(made(record)).to_json() | {"zz_new": [{"a": None}], "zz_newer": "x"}
    assert parse(dump(record.from_json(shape).to_json())) == shape


def test_an_unknown_field_of_a_part_is_written_back():
    shape = {"contract": 1, "id": "r1", "env": "prod", "state": "running", "tables": [{"entity": "a.b", "pages": [1]}]}
    assert Status.from_json(shape).tables == (TableResult(entity="a.b", extra={"pages": [1]}),)
    assert Status.from_json(shape).to_json() == shape


def minimal(record):
    """The least JSON of a record: its required fields."""
    values = {
        "table": "silver.orders",
        "id": "r1",
        "env": "prod",
        "name": "etl-01",
        "metadata_version": "v1",
        "incidents": [],
        "key": {"kind": "run_failed", "workload": "silver.orders", "env": "prod"},
        "state": {Status: "running", AgentRecord: "running", Incident: "open"}.get(record),
    }
    return {told.name: values[told.name] for told in declared(record) if told.required}


@EACH
def test_missing_and_null_fields_are_unknown_never_an_answer(record):
    nulls = {told.name: None for told in declared(record) if not told.required}
    for value in (record.from_json(minimal(record)), record.from_json(minimal(record) | nulls)):
        for told in declared(record):
            assert told.required or getattr(value, told.name) in (None, "")


@EACH
def test_a_missing_required_field_is_named(record):
    for told in declared(record):
        if told.required:
            short = {name: value for name, value in minimal(record).items() if name != told.name}
            with pytest.raises(BadRecord, match=f"The {record.WHAT} has no {told.name}"):
                record.from_json(short)


@pytest.mark.parametrize("record", [r for r in RECORDS if r is not Wish], ids=lambda record: record.WHAT)
def test_no_field_takes_a_value_of_every_kind(record):
    for told in declared(record):
        refusals = []
        for wrong in ({"a": [1]}, [[1]], "later", 1.5, True):
            with contextlib.suppress(BadRecord):
                record.from_json(minimal(record) | {told.name: wrong})
                continue
            refusals.append(wrong)
        assert len(refusals) >= 3, f"{told.name} takes nearly anything"


@pytest.mark.parametrize(
    ("record", "change", "sentence"),
    [
        (Lease, {"pid": "12"}, "The lease has pid as a text, a whole number is expected."),
        (Lease, {"pid": True}, "The lease has pid as true or false, a whole number is expected."),
        (Lease, {"pid": 1.0}, "The lease has pid as a number, a whole number is expected."),
        (Lease, {"seconds": "300"}, "The lease has seconds as a text, a number is expected."),
        (Lease, {"renewed_at": 12}, "The lease has renewed_at as a whole number, a time such as"),
        (Lease, {"renewed_at": "yesterday"}, "The lease has a renewed_at that is no time: 'yesterday' is not a time."),
        (Lease, {"renewed_at": "2027-02-30T00:00:00Z"}, "has a renewed_at that is no time"),
        (Status, {"state": "resting"}, "The status has state 'resting', one of accepted, running, succeeded"),
        (Status, {"agents": "etl-01"}, "The status has agents as a text, a list is expected."),
        (Status, {"agents": ["etl-01", 2]}, r"The status has agents\[1\] as a whole number, a text is expected."),
        (Status, {"tables": [{"rows_read": "9"}]}, r"The status has tables\[0\].rows_read as a text, a whole number"),
        (Status, {"tables": [[]]}, r"The status has tables\[0\] as a list, an object is expected."),
        (Status, {"offered": "yes"}, "The status has offered as a text, true or false is expected."),
        (Status, {"attempt": -1}, "The status has an attempt below zero."),
        (Status, {"id": ""}, "The status names no request or no environment."),
        (AgentRecord, {"queue": {"dead": "2"}}, "The agent record has queue.dead as a text, a whole number"),
        (AgentRecord, {"pipeline": {"entities": [1]}}, r"The agent record has pipeline.entities\[0\] as a whole"),
        (Request, {"entities": []}, "The request has an empty list of entities. Leave entities out to ask for all."),
        (Request, {"backfill": "some"}, "The request has backfill 'some', only 'full' is known."),
        (Ledger, {"incidents": [{"id": "x"}]}, r"The ledger has no incidents\[0\].key."),
    ],
)
def test_a_refusal_says_which_field_and_what_is_expected(record, change, sentence):
    with pytest.raises(BadRecord, match=sentence):
        record.from_json(minimal(record) | change)


def test_a_refusal_never_shows_a_value_of_a_wrong_kind():
    with pytest.raises(BadRecord) as caught:
        AgentRecord.from_json({"name": "etl-01", "state": "running", "pid": "hunter2"})
    assert "hunter2" not in str(caught.value)


@EACH_WHOLE
def test_a_missing_contract_is_the_first_and_it_is_always_written(record):
    if record is not Wish:
        for contract in ({}, {"contract": None}, {"contract": 1}):
            assert record.from_json(minimal(record) | contract).to_json()["contract"] == 1


@EACH_WHOLE
def test_a_higher_contract_is_left_alone_whatever_else_it_holds(record):
    if record is Wish:
        assert record.from_json({"contract": 2}) == Wish()
        return
    with pytest.raises(NewerContract, match=f"The {record.WHAT} has contract 2, this version knows 1"):
        record.from_json({"contract": 2, "state": ["not", "ours"], "incidents": 7})


@pytest.mark.parametrize("contract", [0, -1, "1", True, 1.0, [1]])
def test_a_contract_that_is_no_number_from_one_is_a_bad_record(contract):
    with pytest.raises(BadRecord, match="The release has contract"):
        next(record for record in RECORDS if record.WHAT == "release").from_json(
            {"metadata_version": "v1", "contract": contract}
        )


@pytest.mark.parametrize("body", [b"", b"\x00\xff", b"[]", b"cancel please", b'{"contract": 9}', b'{"op": 7}', b"{}"])
def test_any_file_is_a_wish(body):
    assert Wish.from_body(body) == Wish()


def test_a_wish_that_is_a_record_is_read():
    assert Wish.from_body(b'{"asked_by": "Kim", "note": "now"}') == Wish(asked_by="Kim", extra={"note": "now"})


def first_version(cls):
    """The record as a reader knows it that has only the first version's fields."""
    known = []
    for told in declared(cls):
        if told.first:
            hint = Annotated[told.hint, told.meaning]
            known.append((told.name, hint) if told.required else (told.name, hint, field(default=told.default)))
    return make_dataclass(
        f"First{cls.__name__}",
        known,
        bases=(JsonRecord,),
        frozen=True,
        slots=True,
        kw_only=True,
        namespace={"WHAT": cls.WHAT},
    )


@EACH_WHOLE
@MANY
@given(data=st.data())
def test_a_reader_of_the_first_version_reads_and_keeps_a_new_record(record, data):
    value = data.draw(made(record))
    old = first_version(record).from_json(value.to_json())
    for told in declared(record):
        if told.first:
            assert getattr(old, told.name) == getattr(value, told.name)
    assert record.from_json(old.to_json()) == value, "a field was lost on the way through the older program"


@EACH_WHOLE
@MANY
@given(data=st.data())
def test_a_record_of_the_first_version_is_read_with_the_rest_unknown(record, data):
    later = [told.name for told in declared(record) if not told.first]
    shape = {name: value for name, value in data.draw(made(record)).to_json().items() if name not in later}
    value = record.from_json(shape)
    assert all(getattr(value, name) in (None, "") for name in later)
    assert value.to_json() == shape


def test_nothing_the_first_version_lacked_must_be_there():
    for record in RECORDS:
        for told in declared(record):
            assert told.first or not told.required, f"{record.WHAT}.{told.name}"


def test_the_first_version_lacked_what_the_contract_says_it_lacked():
    later = {told.name for record in (AgentRecord, Lease) for told in declared(record) if not told.first}
    assert later == {
        "instance", "op", "boot", "process_started_at", "grace_seconds", "owner", "identity", "credential"
    }  # fmt: skip


def test_a_status_of_the_first_version_counts_as_one_hold():
    old = Status.from_json({"contract": 1, "id": "r1", "env": "prod", "state": "running", "agent": "etl-01"})
    assert old.holds == ("etl-01",)
    assert replace(old, agent=None).holds == ()
    assert replace(old, agents=()).holds == ()


def test_an_agent_of_the_first_version_is_judged_by_its_beats():
    old = AgentRecord.from_json(
        {
            "contract": 1,
            "name": "etl-01",
            "state": "running",
            "heartbeat_at": "2027-01-15T09:00:00Z",
            "stale_after": "2027-01-15T09:01:30Z",
        }
    )
    assert [liveness(old, seconds) for seconds in (0.0, 89.9, 90.0, 149.9, 150.0)] == [
        Liveness.ALIVE, Liveness.ALIVE, Liveness.LATE, Liveness.LATE, Liveness.LOST
    ]  # fmt: skip


def test_a_field_declared_without_a_meaning_is_a_bug_at_first_use():
    broken = make_dataclass("Broken", [("name", str)], bases=(JsonPart,), frozen=True, slots=True, kw_only=True)
    with pytest.raises(AssertionError, match="the field name is declared without its meaning"):
        declared(broken)


def test_a_later_field_says_so_on_the_contract_page():
    assert isinstance(Later("x"), Later)
    assert {told.first for told in declared(Lease)} == {True, False}


def test_states_are_written_as_their_names():
    assert Status(id="r", env="e", state=RequestState.RUNNING).to_json()["state"] == "running"
    assert type(AgentRecord(name="a", state=AgentState.STOPPED).to_json()["state"]) is str
