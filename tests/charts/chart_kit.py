"""What the tests of charts share: a cell in memory that can fail, a record for each state, and facts for each guard.

`FACTS` says, for each guard of each chart, which facts make it hold as an arrow wants it; an arrow is performed with
the facts of its guards merged. So a new guard without an entry here fails the tests by name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fakes import FakeClock, FakeIds

from fdagent.commit import commit
from fdagent.errors import Conflict, Unknown
from machines.chart import Arrow, Chart
from machines.incident import Ask, judge_entries
from machines.ledger import LEDGER
from machines.registry import CHARTS
from models.agent import AgentFacts, AgentRecord, AgentState
from models.incident import Incident, IncidentFacts, IncidentState, ProblemKey
from models.job import FINAL as JOB_FINAL
from models.job import Job, JobFacts, JobState
from models.lease import Lease, LeaseFacts
from models.ledger import Ledger, LedgerFacts
from models.release import Release, ReleaseFacts
from models.slot import DAY, Request, SlotFacts
from models.status import FINAL, RequestFacts, RequestState, Status
from models.step import ABSENT, Guard, Step, Write
from models.wish import Wish, WishFacts

NOW = 1_800_000_000.0
LONG_AGO = NOW - 400 * DAY
ARROWS = [
    (name, event, number, arrow)
    for name, chart in CHARTS.items()
    for event in chart.events
    for number, arrow in enumerate(arrow for e, arrow in chart.arrows() if e == event)
]
ARROW_IDS = [f"{name}-{event}-{arrow.source}-{arrow.dest}-{number}" for name, event, number, arrow in ARROWS]


@dataclass
class MemoryCell:
    """One record; `before` runs between a read and its write, `fault` is raised before or after a write takes place."""

    record: Any = None
    version: int = 1
    log: list[Write] = field(default_factory=list)
    reads: int = 0
    before: list[Callable[[], None]] = field(default_factory=list)
    lose_answers: int = 0
    lose_requests: int = 0

    def read(self) -> tuple[Any, str]:
        self.reads += 1
        return self.record, str(self.version)

    def write(self, how: Write, record: Any, tag: str) -> str:
        if self.before:
            self.before.pop(0)()
        if self.lose_requests:
            self.lose_requests -= 1
            raise Unknown("no answer, and nothing was written")
        fits = self.record is None if how is Write.CREATE else self.record is not None and tag == str(self.version)
        if not fits:
            raise Conflict("another version is there")
        assert (record is None) is (how is Write.DELETE)
        self.put(record)
        self.log.append(how)
        if self.lose_answers:
            self.lose_answers -= 1
            raise Unknown("no answer, and it was written")
        return str(self.version)

    def put(self, record: Any) -> None:
        self.record, self.version = record, self.version + 1


def go(chart: Chart[Any, Any], cell: MemoryCell, event: str, facts: Any, *, op: str = "my-op", **more: Any) -> Any:
    """Commit one event; `facts` may be a function of the record."""
    gather = facts if callable(facts) else lambda _: facts
    clock = more.pop("clock", None) or FakeClock(NOW)
    return commit(chart, cell, event, op=op, facts=gather, clock=clock, ids=FakeIds(), **more)


def record_in(name: str, state: str) -> Any:
    """A plain record of a chart in a state; None for absent. Its op is `old-op`, it holds a field from the future."""
    return None if state == ABSENT else RECORDS[name](state)


def _status(state: str) -> Status:
    ended = LONG_AGO if state in FINAL else None
    return Status(
        id="r1",
        env="prod",
        state=RequestState(state),
        op="old-op",
        agent="etl-01",
        instance="i1",
        host="h1",
        agents=("etl-01",),
        job_id="j1",
        deadline=LONG_AGO if state in FINAL else NOW + 600,
        finished_at=ended,
        error="it broke",
        run_ids=("run-1",),
        extra={"later": [1]},
    )


def _job(state: str) -> Job:
    running, final = state == JobState.RUNNING, state in JOB_FINAL
    return Job(
        id="j1",
        state=JobState(state),
        op="old-op",
        env="prod",
        run_key="r1",
        dedupe_key="r1",
        attempt=1,
        claim="c1" if running else "",
        finished_at=LONG_AGO if final else None,
        reason="handed_over" if state == JobState.CANCELLED else "",
    )


def incident(state: str = "open", entry_id: str = "inc-1", **changes: Any) -> Incident:
    resolved = NOW - 3600 if state == "resolved" else None
    key = ProblemKey(kind="run_failed", workload="silver.orders", env="prod")
    base = Incident(
        id=entry_id,
        key=key,
        state=IncidentState(state),
        op="old-op",
        evidence={"seen": ["run-1"]},
        opened_at=NOW - 7200,
        occurrences=1,
        resolved_at=resolved,
        extra={"later": True},
    )
    return replace(base, **changes)


RECORDS: dict[str, Callable[[str], Any]] = {
    "job": _job,
    "slot": lambda _: Request(op="old-op", extra={"later": 1}),
    "wish": lambda _: Wish(op="old-op"),
    "request": _status,
    "lease": lambda _: Lease(table="silver.orders", op="old-op", agent="etl-01", seconds=300.0, extra={"later": 1}),
    "agent": lambda state: AgentRecord(
        name="etl-01", state=AgentState(state), op="old-op", instance="i1", extra={"later": 1}
    ),
    "release": lambda _: Release(metadata_version="v1", op="old-op", extra={"later": 1}),
    "ledger": lambda _: Ledger(incidents=(incident(),), op="old-op", extra={"later": 1}),
    "incident": incident,
}

NEW_JOB = Job(id="j1", state=JobState.QUEUED, op="x", env="prod", run_key="r1", dedupe_key="r1")
NEW_SLOT = Request(schedule="hourly", slot="20270115T0800Z", due_at=NOW - 60, deadline=NOW + 3540)
NEW_LEASE = Lease(table="silver.orders", agent="etl-02", seconds=300.0)
ME = {"agent": "etl-02", "instance": "i2"}
HOLDER = {"agent": "etl-01", "instance": "i1"}
PERSON = {"by_a_person": True, "person": "Kim"}
OLD = {"finished_at": LONG_AGO, "store_now": NOW, "retention_seconds": 14 * DAY}

BASE: dict[str, Any] = {
    "job": JobFacts(new=NEW_JOB),
    "slot": SlotFacts(store_now=NOW, new=NEW_SLOT),
    "wish": WishFacts(store_now=NOW),
    "request": RequestFacts(**ME, store_now=NOW, deadline=NOW + 600, id="r1", env="prod"),
    "lease": LeaseFacts(new=NEW_LEASE),
    "agent": AgentFacts(
        instance="i2", new=AgentRecord(name="etl-01", state=AgentState.RUNNING, instance="i2", status_seconds=30.0)
    ),
    "release": ReleaseFacts(metadata_version="v2"),
    "ledger": LedgerFacts(),
    "incident": IncidentFacts(new=incident(op="")),
}

FACTS: dict[str, dict[str, dict[str, Any]]] = {
    "job": {
        "key_free": {"key_free": True},
        "due": {},
        "worker_free": {"worker_free": True},
        "mine": {"claim": "c1"},
        "believed": {"believed": True},
        "left_alone": {"lapsed": True},
        "retryable": {"retryable": True},
        "attempts_left": {},
        "not attempts_left": {"record": {"attempt": 3}},
        "stop_asked": {"record": {"stop": "cancelled"}},
        "not stop_asked": {},
        "has_reason": {"reason": "cancelled"},
        "handed_over": {},
        "status_names_us": {"status_names_us": True},
        "by_a_person": {"by_a_person": True},
        "not status_final": {},
        "kept_long_enough": {"retention_seconds": DAY},
    },
    "slot": {
        "of_a_schedule": {},
        "not of_a_schedule": {"new": Request()},
        "due": {},
        "before_deadline": {},
        "asked": {"asked": True},
        "status_final": {"status_final": True},
        "kept_long_enough": OLD,
        "past_deadline": {"deadline": NOW},
    },
    "wish": {
        "asked": {"asked": True, "asked_by": "Kim"},
        "status_final": {"status_final": True},
        "not status_final": {},
        "kept_long_enough": OLD,
        "past_deadline": {"deadline": NOW},
        "orphan": {"orphan": True},
        "old": {"file_written_at": LONG_AGO, "retention_seconds": 14 * DAY},
    },
    "request": {
        "cancel_wished": {"cancel_file": True},
        "no_cancel_file": {"cancel_file": False},
        "cancel_falls_to_us": {"cancel_seen_seconds": 60.0},
        "holder_gone": {"holder_gone": True},
        "before_deadline": {"deadline": NOW + 600},
        "past_deadline": {"deadline": NOW, "record": {"deadline": NOW}},
        "over": {"record": {"deadline": NOW}},
        "expiry_falls_to_us": {"record": {"deadline": NOW - 60}},
        "left_behind": {"holder_gone": True},
        "no_way_on": {"max_attempts": 1},
        "readable": {"readable": True},
        "unreadable_long": {"unreadable_seconds": 60.0},
        "entities_unknown": {"unknown_entities": True},
        "not entities_unknown": {},
        "nobody_may_serve": {"nobody_may_serve": True},
        "may_serve": {"may_serve": True},
        "may_take_over": {"take_over": True},
        "up_for_taking": {"holder_gone": True},
        "request_there": {"request_file": True},
        "request_gone": {"request_file": False},
        "attempts_left": {"max_attempts": 3},
        "room": {"worker_free": True},
        "older_self": {"agent": "etl-01"},
        "holds_name": {"holds_name": True},
        "mine": HOLDER,
        "no_job_here": {"has_job": False},
        "not offered": {},
        "to_be_tried_again": {"to_be_tried_again": True},
        "cannot_run_soon": {"cannot_run_soon": True},
        "no_worker_on_it": {"worker_on_it": False},
        "by_a_person": PERSON,
        "op_named": {"named_op": "old-op"},
        "kept_long_enough": {"store_now": NOW, "retention_seconds": 14 * DAY},
    },
    "lease": {
        "lapsed": {"lapsed": True},
        "not lapsed": {},
        "left_behind": {"process_gone": True},
        "mine": {"ops": frozenset({"old-op"})},
        "believed": {"believed": True},
        "by_a_person": PERSON,
        "op_named": {"named_op": "old-op"},
    },
    "agent": {
        "mine": {"instance": "i1", "new": None},
        "unreplaced": {"ops": frozenset({"old-op"})},
        "name_free": {"silent": True},
        "lost": {"holder_lost": True},
        "by_a_person": PERSON,
        "unneeded": {"open_requests": False},
    },
    "release": {"by_a_person": PERSON, "as_shown": {}},
    "ledger": {"changed": {"entries": (incident(op="my-op"),)}},
    "incident": {
        "holds": {"holds": True},
        "none_stands": {"stands": False},
        "new_occurrence": {"occurrence": "run-2"},
        "by_a_person": PERSON,
        "over": {"over": True},
        "workload_gone": {"workload_gone": True},
        "lately_resolved": {},
        "unattended": {"escalate_after_seconds": 3600.0},
        "not escalated": {},
        "told": {"told": "open"},
        "surplus": {"surplus": True},
    },
}


SHUT: dict[str, dict[str, dict[str, Any]]] = {
    "job": {
        "due": {"record": {"not_before": NOW + 1}},
        "attempts_left": {"record": {"attempt": 3}},
        "not stop_asked": {"record": {"stop": "cancelled"}},
        "handed_over": {"record": {"reason": "cancelled"}},
        "not status_final": {"status_final": True},
    },
    "slot": {
        "of_a_schedule": {"new": replace(NEW_SLOT, slot=None)},
        "not of_a_schedule": {"new": NEW_SLOT},
        "due": {"new": replace(NEW_SLOT, due_at=NOW + 1)},
        "before_deadline": {"new": replace(NEW_SLOT, deadline=NOW)},
        "kept_long_enough": {"finished_at": NOW - 13 * DAY},
    },
    "wish": {"not status_final": {"status_final": True}, "kept_long_enough": {"finished_at": NOW - 13 * DAY}},
    "request": {
        "before_deadline": {"deadline": NOW, "record": {"deadline": NOW}},
        "over": {"record": {"deadline": NOW + 1}, "holder_gone": True, "request_file": True},
        "past_deadline": {"deadline": NOW + 1, "record": {"deadline": NOW + 1}},
        "expiry_falls_to_us": {"record": {"deadline": NOW - 59}},
        "not entities_unknown": {"unknown_entities": True},
        "attempts_left": {"max_attempts": 1},
        "not offered": {"record": {"offered": True}},
        "kept_long_enough": {"record": {"finished_at": NOW - 13 * DAY}},
    },
    "lease": {"not lapsed": {"lapsed": True}},
    "release": {"as_shown": {"shown": "v0"}},
    "incident": {
        "lately_resolved": {"record": {"resolved_at": NOW - 25 * 3600}},
        "not escalated": {"record": {"escalated_at": NOW}},
    },
}
"""Facts that make a guard say no where leaving out its own facts does not."""


def scene(name: str, arrow: Arrow, shut: Guard[Any, Any] | None = None) -> tuple[Any, Any]:
    """A record and facts with which all of this arrow's guards hold, or all but the one to shut."""
    record = record_in(name, arrow.source)
    told = [FACTS[name][guard.label] for guard in arrow.guards if guard is not shut]
    told += [SHUT.get(name, {}).get(shut.label, {})] if shut is not None else []
    facts: dict[str, Any] = {}
    if name == "release":
        facts["shown"] = "" if record is None else record.metadata_version
    for changes in told:
        for key, value in changes.items():
            if key == "record":
                record = None if record is None else replace(record, **value)
            else:
                facts[key] = value
    return record, replace(BASE[name], **facts)


def perform(name: str, event: str, arrow: Arrow, cell: MemoryCell, **more: Any) -> Any:
    """Commit an arrow with its scene's facts on the record in `cell`; an entry is committed with its ledger."""
    chart = CHARTS[name]
    _, facts = scene(name, arrow)
    if chart.within is None:
        return go(chart, cell, event, facts, **more)
    ask = Ask("inc-1", event, facts)

    def gather(ledger: Ledger | None) -> LedgerFacts:
        entries = () if ledger is None else ledger.incidents
        return LedgerFacts(entries=judge_entries(entries, [ask], now=NOW, op=more.get("op", "my-op")).entries)

    return go(LEDGER, cell, "write", gather, **more)


def cell_for(name: str, arrow: Arrow) -> MemoryCell:
    """A cell that holds what the arrow starts from; of an entry: the ledger it is in."""
    record, _ = scene(name, arrow)
    if CHARTS[name].within is None:
        return MemoryCell(record)
    key = ProblemKey(kind="freshness", workload="gold.x", env="prod")
    newer = 200 if arrow.dest == ABSENT else 1
    others = tuple(incident("resolved", f"other-{n}", key=key, resolved_at=NOW) for n in range(newer))
    return MemoryCell(Ledger(incidents=others if record is None else (*others, record), op="old-op"))


def answers(name: str, event: str, record: Any, facts: Any, now: float = NOW) -> list[Any]:
    """Every arrow of an event with its answer, judged by itself."""
    return CHARTS[name].answers(event, Step(record, now, facts, "my-op"))
