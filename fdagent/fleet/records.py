"""The shared records of a control root as a reader finds them: their keys, and a folder of them read whole.

Guarantees: reading writes nothing; a file that is no such record hides no other one and is named with what is wrong.
Ages are by the store's own clock: an estimate for people, which decides nothing (rule C4).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fdagent.errors import BadKey, Denied, InvalidInput
from fdagent.fleet.damaged import naming
from fdagent.ports import Store
from fdagent.stores.cell import StoreCell
from models import codec
from models.jsonrecord import JsonRecord
from models.lease import Lease
from models.slot import Request
from models.status import Status
from models.wish import Wish

R = TypeVar("R", bound=JsonRecord)

AGENTS, LEASES, REQUESTS, STATUSES, CANCELS = "agents/", "leases/", "requests/", "status/", "cancel/"
SUFFIX = ".json"


def parser(kind: type[R]) -> Callable[[bytes], R]:
    """Bytes to a record of this kind; raises BadRecord or NewerContract."""
    return lambda body: kind.from_json(codec.parse(body))


def dump(record: JsonRecord) -> bytes:
    """A record's bytes."""
    return codec.dump(record.to_json())


def lease_key(table: str) -> str:
    """The key of a table's lease: `leases/<layer>.<table>.json`."""
    return f"{LEASES}{table}{SUFFIX}"


def id_of(key: str) -> str:
    """The id in a key such as `status/<id>.json`."""
    return key.rpartition("/")[2].removesuffix(SUFFIX)


def request_key(request_id: str) -> str:
    """`requests/<id>.json`."""
    return f"{REQUESTS}{request_id}{SUFFIX}"


def status_key(request_id: str) -> str:
    """`status/<id>.json`."""
    return f"{STATUSES}{request_id}{SUFFIX}"


def cancel_key(request_id: str) -> str:
    """`cancel/<id>.json`."""
    return f"{CANCELS}{request_id}{SUFFIX}"


def _cell(store: Store, key: str, kind: type[R]) -> StoreCell[R]:
    return StoreCell(store, key, naming(key, parser(kind)), dump)


def lease_cell(store: Store, table: str) -> StoreCell[Lease]:
    """The lease's record."""
    return _cell(store, lease_key(table), Lease)


def request_cell(store: Store, request_id: str) -> StoreCell[Request]:
    """The request's file."""
    return _cell(store, request_key(request_id), Request)


def status_cell(store: Store, request_id: str) -> StoreCell[Status]:
    """The request's status."""
    return _cell(store, status_key(request_id), Status)


def wish_cell(store: Store, request_id: str) -> StoreCell[Wish]:
    """The request's cancel file; any file is a wish."""
    return StoreCell(store, cancel_key(request_id), Wish.from_body, dump)


@dataclass(frozen=True, slots=True)
class Found(Generic[R]):
    """One file of a folder: the record, or why it can't be read as one; and its age in seconds where that is known."""

    key: str
    record: R | None
    age: float | None = None
    problem: str = ""


def read_all(store: Store, folder: str, of: type[R], begins: str = "") -> list[Found[R]]:
    """Every record of a folder, by key.

    Args:
        store: The control root.
        folder: Such as `agents/`.
        of: What the records are.
        begins: How the ids of those that are read begin.

    Raises:
        StoreError: The store can't be reached, or refuses this identity the folder.
    """
    keys = [entry.key for entry in store.list(folder) if entry.key.endswith(SUFFIX)]
    found = (_read(store, key, of) for key in keys if key.startswith(folder + begins))
    return [one for one in found if one is not None]


def _read(store: Store, key: str, of: type[R]) -> Found[R] | None:
    """One record; None when it was deleted since the listing."""
    try:
        blob = store.read(key)
        if blob is None:
            return None
        return Found(key, parser(of)(blob.body), blob.age)
    except (InvalidInput, BadKey, Denied) as err:
        return Found(key, None, problem=str(err))
