"""An agent beside many requests that have ended, in a local folder."""

from pathlib import Path

from fleet_kit import Fleet

from fdagent.fleet.records import dump
from fdagent.stores.local import LocalStore
from models.slot import Request
from models.status import RequestState, Status


def agent_beside(root: Path, many: int):
    """One that has polled once, so that it has read them all."""
    fleet = Fleet()
    for folder in ("requests", "status"):
        (root / folder).mkdir()
    request = dump(Request(deadline=fleet.time.now + 9))
    for number in range(many):
        status = Status(
            id=f"r{number}",
            env="dev",
            state=RequestState.SUCCEEDED,
            finished_at=fleet.time.now,
            deadline=fleet.time.now + 9,
        )
        (root / "requests" / f"r{number}.json").write_bytes(request)
        (root / "status" / f"r{number}.json").write_bytes(dump(status))
    fleet.store = LocalStore(root, clock=fleet.true, ids=fleet.ids)
    agent = fleet.agent("etl-01")
    agent.tick()
    return agent
