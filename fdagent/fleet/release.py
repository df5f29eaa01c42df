"""The environment's release: which version of the metadata project may run there.

Guarantees: a promotion is one conditional write over the very release the person was shown. Reading never writes.
"""

from fdagent.commit import Audit, Committed, commit
from fdagent.errors import BadRecord, Refused
from fdagent.ports import Clock, Ids, Store
from fdagent.project.places import Places
from fdagent.project.release import RECORD
from fdagent.stores.cell import StoreCell
from fdagent.stores.local import LocalStore
from machines.release import RELEASE
from models import codec
from models.release import Release, ReleaseFacts
from models.step import Refusal


def open_control(places: Places, *, clock: Clock, ids: Ids) -> Store:
    """The control root of a local environment."""
    return LocalStore(places.control, clock=clock, ids=ids, within=places.project.root)


def promoted_version(store: Store) -> str:
    """The metadata version that may run; empty when nothing was promoted yet.

    Raises:
        BadRecord: The release can't be read.
        StoreError: The control root can't be read.
    """
    release = promoted(store)
    return "" if release is None else release.metadata_version


def promoted(store: Store) -> Release | None:
    """The release; None when nothing was promoted yet.

    Raises:
        BadRecord: It can't be read.
        StoreError: The control root can't be read.
    """
    return _cell(store).read()[0]


def promote(
    store: Store,
    version: str,
    *,
    shown: str,
    git_commit: str,
    by: str,
    clock: Clock,
    ids: Ids,
    audit: Audit | None = None,
) -> Committed[Release]:
    """Promote a version.

    Args:
        store: The environment's control root.
        version: The project's metadata version.
        shown: The promoted version the person was shown; empty: that there was none.
        git_commit: The project's commit; empty outside Git.
        by: Who promotes.
        clock: When.
        ids: Names the write.
        audit: Told when it is promoted.

    Raises:
        Refused: Somebody promoted since it was shown.
    """
    facts = ReleaseFacts(
        by_a_person=True, person=by, shown=shown, metadata_version=version, git_commit=git_commit or None
    )
    op, cell = ids.new(), _cell(store)
    answer = commit(
        RELEASE, cell, "promote", op=op, facts=lambda _: facts, clock=clock, ids=ids, key=RECORD, audit=audit
    )
    if isinstance(answer, Refusal):
        raise Refused(f"Nothing was promoted: {answer}.", fix="Look again with `fdagent promote`.")
    return answer


def _cell(store: Store) -> StoreCell[Release]:
    return StoreCell(store, RECORD, _parse, lambda release: codec.dump(release.to_json()))


def _parse(body: bytes) -> Release:
    try:
        return Release.from_json(codec.parse(body))
    except BadRecord as err:
        raise BadRecord(
            f"The record {RECORD} of the control root can't be used: {err}", fix="Mend or remove it, then promote."
        ) from err
