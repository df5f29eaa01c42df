"""Records and facts made up by hypothesis, from small domains, so that what must coincide often does."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from models.agent import AgentFacts, AgentRecord, AgentState
from models.incident import Incident, IncidentFacts, IncidentState, ProblemKey
from models.job import CANCEL_REASONS, Job, JobFacts, JobState
from models.job import FINAL as JOB_FINAL
from models.lease import Lease, LeaseFacts
from models.ledger import Ledger, LedgerFacts
from models.release import Release
from models.slot import Request, SlotFacts
from models.status import RequestFacts, Status
from models.wish import Wish

NOW = 1_800_000_000.0
WORDS = ["", "a", "b", "i1", "i2", "run-1", "my-op"]
MOMENTS = [0.0, NOW - 60 * 86400, NOW - 86400, NOW - 61, NOW - 60, NOW - 59, NOW, NOW + 1, NOW + 86400]
SPANS = [0.0, 1.0, 59.0, 60.0, 61.0, 90.0, 300.0, 86400.0, 1e9]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=2),
    max_leaves=4,
)
UNKNOWN_FIELDS = st.sampled_from([{}, {"zz_later": 1}, {"zz_other": {"deep": [True, "x"]}, "zz_later": "y"}])
"""Fields no version knows."""


def of_hint(hint: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Values of a declared type."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *notes = get_args(hint)
        return st.sampled_from(MOMENTS) if "time" in notes else of_hint(inner, name)
    if origin in (Union, UnionType):
        return st.one_of(*(st.none() if one is NoneType else of_hint(one, name) for one in get_args(hint)))
    if origin is tuple:
        return st.lists(of_hint(get_args(hint)[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(st.sampled_from(WORDS), max_size=2)
    if origin is Mapping:
        values = JSON if get_args(hint)[1] is Any else of_hint(get_args(hint)[1])
        return st.dictionaries(st.sampled_from(["seen", "rows"]), values, max_size=2)
    return of_plain(hint, name)


def of_plain(hint: Any, name: str) -> st.SearchStrategy[Any]:
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(0, 4)
    if hint is str:
        return st.sampled_from(WORDS)
    if hint is float:
        return st.sampled_from(MOMENTS if name.endswith(("_at", "_now", "deadline", "not_before")) else SPANS)
    if issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    assert is_dataclass(hint)
    return made(hint)


READ_BY_GUARDS = {
    Request: ("op",),
    Wish: ("op",),
    Status: ("state", "op", "agent", "instance", "agents", "deadline", "offered", "finished_at"),
    Lease: ("op",),
    AgentRecord: ("state", "op", "instance"),
    Release: ("metadata_version", "op"),
    Ledger: ("op",),
    Incident: ("state", "op", "evidence", "opened_at", "resolved_at", "escalated_at", "announced"),
}
"""The fields that guards look at: what varies where arrows are judged, and not records read and written."""
NO_GUARD_READS = {
    RequestFacts: ("host", "job_id", "attempt", "entities", "tables", "run_ids", "rows_written", "category", "reason"),
    JobFacts: ("error", "category", "wait_seconds", "worker", "place", "pid", "process_started_at", "tables"),
    AgentFacts: ("stale_seconds", "person"),
    IncidentFacts: ("note", "evaluator", "person", "escalate_to"),
}
NEW_JOB = Job(id="j1", state=JobState.QUEUED, op="x", env="prod", run_key="r1", dedupe_key="r1")
KEY = ProblemKey(kind="run_failed", workload="silver.orders", env="prod")
NEW_INCIDENT = Incident(id="inc-1", key=KEY, state=IncidentState.OPEN)
GIVEN: dict[Any, dict[str, st.SearchStrategy[Any]]] = {
    Status: {"id": st.just("r1"), "env": st.just("prod")},
    Request: {"entities": st.none() | st.just(("silver.*",)), "backfill": st.sampled_from([None, "full"])},
    Lease: {"table": st.just("silver.orders")},
    AgentRecord: {"name": st.just("etl-01"), "state": st.sampled_from(list(AgentState))},
    Ledger: {"incidents": st.sampled_from([(), (NEW_INCIDENT,)])},
    Incident: {
        "id": st.just("inc-1"),
        "key": st.just(KEY),
        "evidence": st.sampled_from([None, {}, {"seen": ["run-1"]}, {"seen": "run-1"}, {"seen": ["run-1", 2]}]),
    },
    JobFacts: {
        "new": st.just(NEW_JOB),
        "reason": st.sampled_from(["", *CANCEL_REASONS]),
        "claim": st.sampled_from(["", "c1", "c2"]),
    },
    SlotFacts: {
        "new": st.builds(
            Request,
            slot=st.sampled_from([None, "20270115T0900Z"]),
            due_at=st.sampled_from([None, *MOMENTS]),
            deadline=st.sampled_from([None, *MOMENTS]),
        )
    },
    RequestFacts: {"id": st.just("r1"), "env": st.just("prod")},
    LeaseFacts: {"new": st.just(Lease(table="silver.orders", seconds=60.0))},
    AgentFacts: {
        "instance": st.just("i2"),
        "new": st.just(AgentRecord(name="etl-01", state=AgentState.RUNNING, instance="i2")),
    },
    LedgerFacts: {"entries": st.sampled_from([None, (), (NEW_INCIDENT,)])},
    IncidentFacts: {"new": st.just(NEW_INCIDENT)},
}


def judged(cls: Any) -> st.SearchStrategy[Any]:
    """Values of a record as its guards can tell them apart."""
    if cls is Job:
        return jobs()
    return _built(cls, lambda name: name in READ_BY_GUARDS[cls])


def facts_of(cls: Any) -> st.SearchStrategy[Any]:
    """Facts as guards can tell them apart; where an arrow makes a record of one in them, there is one."""
    return _built(cls, lambda name: name not in NO_GUARD_READS.get(cls, ()))


def made(cls: Any) -> st.SearchStrategy[Any]:
    """Values of a record or a part of one, every field of it."""
    return _built(cls, lambda _: True)


def _built(cls: Any, varies: Callable[[str], bool]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls, include_extras=True)
    parts = {}
    for told in fields(cls):
        if told.name == "extra":
            parts["extra"] = UNKNOWN_FIELDS
        elif told.name in GIVEN.get(cls, {}):
            parts[told.name] = GIVEN[cls][told.name]
        elif varies(told.name):
            parts[told.name] = of_hint(hints[told.name], told.name)
    return st.builds(cls, **parts)


@st.composite
def jobs(draw: Any) -> Job:
    state = draw(st.sampled_from(list(JobState)))
    most = draw(st.integers(1, 3))
    return Job(
        id="j1",
        state=state,
        op=draw(st.sampled_from(["my-op", "old-op"])),
        env="prod",
        run_key="r1",
        dedupe_key="r1",
        attempt=draw(st.integers(0, most - (state is JobState.QUEUED))),
        max_attempts=most,
        not_before=draw(st.sampled_from(MOMENTS)),
        claim=draw(st.sampled_from(["c1", "c2"])) if state is JobState.RUNNING else "",
        stop=draw(st.sampled_from(["", *CANCEL_REASONS])),
        reason=draw(st.sampled_from(["", *CANCEL_REASONS])),
        finished_at=draw(st.sampled_from(MOMENTS)) if state in JOB_FINAL else None,
    )
