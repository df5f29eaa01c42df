"""How shared records, what may happen to a record, and what a look found appear to a person.

Guarantees: nothing here decides or reads anything; what another program wrote into a record is shown with every
character escaped that a terminal would obey; what is concluded from an age is called an estimate.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from fdagent.cli.view import console, grid, hanging, sentence, state, when
from fdagent.fleet.copies import Odd, Scheduled
from fdagent.fleet.records import Found
from fdagent.fleet.slotlog import SlotSeen, counts
from fdagent.probe.findings import Finding, Level
from fdagent.project.problems import printable
from fdagent.why import Answer
from models.agent import AgentRecord
from models.lease import Lease
from models.liveness import liveness
from models.times import lasted

LEVELS = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red"}
LEVEL_WIDTH = 8
MOST_SLOTS = 15
ARROW, GUARD = 2, 6
"""How far the lines of an arrow and of its guards are indented."""


def agents(env: str, found: Sequence[Found[AgentRecord]]) -> None:
    """The agents of an environment."""
    if not found:
        sentence(f"No agent has announced itself in {env}.")
        return
    columns = ("agent", "state", "estimate", "host", "since", "beat", "runs", "queue", "version", "metadata")
    rows = [_agent(one.record, one.age) for one in found if one.record is not None]
    if rows:
        grid(f"Agents of {env}", columns, rows)
        sentence("The estimate goes by the record's age on the store's clock; agents go by what they have watched.")
    _unreadable(found)


def _agent(record: AgentRecord, age: float | None) -> tuple[str | Text, ...]:
    return (
        said(record.name),
        str(record.state),
        state(str(liveness(record, age))),
        said(record.host),
        when(record.started_at),
        ago(age),
        said(", ".join(job.job_id or "?" for job in record.running or ())),
        said(", ".join(f"{number} {name}" for name, number in (record.queue or {}).items())),
        said(record.version),
        said(record.metadata_version)[:12],
    )


def schedules(env: str, found: Sequence[Scheduled], slots: Mapping[str, Sequence[SlotSeen]], now: float) -> None:
    """The environment's schedules: a shared one in one row, with what became of its last day's due times."""
    if not found:
        return
    columns = ("schedule", "agents", "runs", "next due", "last 24 hours", "note")
    rows = [_schedule(one, slots.get(one.id, ()), now) for one in found]
    grid(f"Schedules of {env}", columns, rows, wrap=("runs", "last 24 hours", "note"))


def _schedule(one: Scheduled, slots: Sequence[SlotSeen], now: float) -> tuple[str | Text, ...]:
    agents, newest = ", ".join(one.agents), one.newest
    due = newest.next_due_at
    waits = "" if due is None else "now" if due <= now else f"in {lasted(due - now)}"
    notes = [f"paused on {', '.join(one.paused)}"] if one.paused else []
    if due is None and not one.paused:
        notes.append("not due by itself")
    return (
        said(one.id),
        f"Shared by {said(agents)}" if one.shared else said(agents),
        said(newest.when),
        waits,
        ", ".join(f"{number} {name}" for name, number in counts(slots).items()),
        said("; ".join(notes)),
    )


def odd_slots(env: str, slots: Mapping[str, Sequence[SlotSeen]], now: float) -> None:
    """The slots that did not go smoothly, newest first: missed, expired, failed, or gone from one agent to another."""
    odd = sorted((one for many in slots.values() for one in many if not one.smooth), key=lambda one: -one.due)
    if not odd:
        return
    rows = [
        (said(one.id), state(one.state), f"{lasted(now - one.due)} ago", said(" → ".join(one.holds)), said(one.why))
        for one in odd[:MOST_SLOTS]
    ]
    grid(f"Slots of {env} to look at", ("slot", "state", "due", "held by", "why"), rows, wrap=("why",))
    if len(odd) > MOST_SLOTS:
        sentence(f"And {len(odd) - MOST_SLOTS} older ones of the last 24 hours: --json lists all.")


def warnings(odd: Sequence[Odd]) -> None:
    """What about the schedules is hardly meant."""
    for one in odd:
        sentence(f"! {said(one.sentence)}", "yellow")


def leases(env: str, found: Sequence[Found[Lease]]) -> None:
    """The tables that are held."""
    if not found:
        sentence(f"No table of {env} is held.")
        return
    columns = ("table", "agent", "host", "job", "taken", "renewed", "span", "op")
    rows = [_lease(one.record, one.age) for one in found if one.record is not None]
    if rows:
        grid(f"Leases of {env}", columns, rows)
        sentence("One that is not renewed for its span lapses by itself; how long ago that was is an estimate.")
    _unreadable(found)


def _lease(record: Lease, age: float | None) -> tuple[str, ...]:
    return (
        said(record.table),
        said(record.agent),
        said(record.host),
        said(record.job_id),
        when(record.acquired_at),
        ago(age),
        "" if record.seconds is None else lasted(record.seconds),
        said(record.op),
    )


def _unreadable(found: Sequence[Found[Any]]) -> None:
    """Files that are no such records."""
    for one in found:
        if one.record is None:
            sentence(f"{said(one.key)} can't be read: {said(one.problem)}", "yellow")


def why(
    about: tuple[str, str, str],
    now: str,
    answers: Sequence[Answer],
    asked_by: Mapping[str, str],
    notes: Sequence[str],
) -> None:
    """Each arrow from a record's state, open or shut, and each guard's answer; `about`: kind, name, environment."""
    out = console()
    kind, name, env = about
    called = kind if kind == name else f"{kind} {said(name)}"
    out.print(Text.assemble((f"The {called} of {said(env)} is ", "bold"), state(now)), soft_wrap=True)
    for note in notes:
        sentence(said(note), indent=ARROW)
    for answer in answers:
        shown = Text("open", "green") if answer.open else Text("shut", "red")
        arrow = Text.assemble((f"{' ' * ARROW}{answer.event} -> {answer.dest}: ", "bold"), shown)
        asker = asked_by.get(answer.event, "")
        out.print(arrow + Text(f"  ({asker})" if asker else ""), soft_wrap=True)
        for check in answer.checks:
            first = Text(" " * GUARD).append(f"{'yes' if check.held else 'no':3}  ", "" if check.held else "red")
            hanging(first, check.sentence)


def findings(found: Sequence[Finding]) -> None:
    """One line for each look, and what to do where something is wrong."""
    out = console()
    for one in found:
        hanging(Text(f"{one.level.value:{LEVEL_WIDTH}}", LEVELS[one.level]), f"{one.what}: {one.sentence}")
        if one.fix:
            sentence(f"-> {said(one.fix)}", indent=LEVEL_WIDTH)
    wrong, known = (sum(one.level is level for one in found) for level in (Level.ERROR, Level.WARNING))
    out.print(f"{counted(wrong, 'error')}, {counted(known, 'warning')}.")


def said(text: str | None) -> str:
    """What another program wrote, safe for a terminal."""
    return printable(text or "")


def counted(number: int, what: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def ago(seconds: float | None) -> str:
    """An age; one that makes no sense, such as that of a record from the future, is not known."""
    return "?" if seconds is None or seconds < 0 else f"{lasted(seconds)} ago"
