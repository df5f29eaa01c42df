"""Every chart by its name, with the key its record lies under and the record itself: what pages and commands list."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from machines import agent, incident, job, lease, ledger, release, request, slot, wish
from machines.chart import Chart
from models.agent import AgentRecord
from models.incident import Incident
from models.jsonrecord import JsonPart
from models.lease import Lease
from models.ledger import Ledger
from models.release import Release
from models.slot import Request
from models.status import Status
from models.wish import Wish


@dataclass(frozen=True, slots=True)
class Entry:
    """One chart: its module's docstring is the prose of its page; `record` is None where no contract is published."""

    chart: Chart[Any, Any]
    module: ModuleType
    key: str
    record: type[JsonPart] | None


ENTRIES = (
    Entry(job.JOB, job, "a row of `queue.sqlite3` in the agent's home", None),
    Entry(slot.SLOT, slot, "`requests/<id>.json`", Request),
    Entry(wish.WISH, wish, "`cancel/<id>.json`", Wish),
    Entry(request.REQUEST, request, "`status/<id>.json`", Status),
    Entry(lease.LEASE, lease, "`leases/<layer>.<table>.json`, `leases/_maintenance.json`", Lease),
    Entry(agent.AGENT, agent, "`agents/<name>.json`", AgentRecord),
    Entry(release.RELEASE, release, "`release.json`", Release),
    Entry(ledger.LEDGER, ledger, "`incidents/incidents.json`", Ledger),
    Entry(incident.INCIDENT, incident, "an entry of `incidents/incidents.json`", Incident),
)

CHARTS: dict[str, Chart[Any, Any]] = {entry.chart.name: entry.chart for entry in ENTRIES}
