"""One data change of one table lands exactly once for its run key, whatever happens to the answers.

Guarantees, for one `app_id` (a run key) and one table
- The change is computed on a pinned version and committed against that version only, after a look for the run key's
  transaction on that very snapshot. So the effect lands once, whoever else holds the same run key, however often and
  however late a commit arrives; no clock is involved.
- After any answer the table is opened anew; landed means that the newest snapshot holds the transaction.
- Data files of an attempt are discarded only when the version it wanted is taken by another commit. While that version
  is free the attempt may still land, so the same change is committed again.
- A pure append keeps its files over lost races, so that a busy foreign writer can't starve it.

Does not guarantee that a change which was checked or sent never lands after this process lost its lease: it may, once,
as if it had finished a moment earlier. Files of an attempt whose process died stay until somebody cleans the folder
(who makes a commit first). Rests on two settings of the table: young log files are never cleaned, and transactions are
kept longer than any run may be retried. Imports neither DuckDB nor deltalake.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from fdagent.attempt import Done, Task, attempt
from fdagent.errors import GaveUp, TableBusy, Unknown
from fdagent.ports import Author, Clock, Ids, Note, Pinned, Table

RECOMPUTES = 3
"""Most times a change is computed again after a lost race."""
TRIES = 40
"""Most commits of one landing: a pure append, or one whose answers stay away, is sent again and again."""


class Change(Protocol):
    """What the loop needs to know of a change."""

    @property
    def append_only(self) -> bool:
        """It only adds files: it is right on any later version that has the same marks."""
        ...


S = TypeVar("S", bound=Pinned)
C = TypeVar("C", bound=Change)


@dataclass(frozen=True, slots=True)
class Prepare:
    """A commit that is harmless alone and safe to repeat (create the table, add columns), due before the change."""

    what: str
    apply: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Landed(Generic[C]):
    """This landing's own change is in the table."""

    change: C
    attempt_id: str
    version: int


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """The run key's effect was there, by another attempt; `author` is None where the log no longer says whose."""

    author: Author | None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing moved, so nothing was committed."""


Landing = Landed[C] | AlreadyDone | Unchanged


def land(
    table: Table[S, C],
    *,
    app_id: str,
    note: Callable[[str], Note],
    compute: Callable[[S, str], C | Prepare | None],
    keeps: Callable[[S, C], C | None],
    still_mine: Callable[[], None],
    clock: Clock,
    ids: Ids,
) -> Landing[C]:
    """Land one change.

    Args:
        table: The table.
        app_id: The transaction that names the run key.
        note: What the commit carries, for an attempt id.
        compute: Computes the change on a snapshot, for an attempt id; None: nothing moved. It may write data files and
            quarantine rows of that attempt, and cleans up after itself when it raises.
        keeps: After a lost race of a pure append: the change on the newer snapshot; None: compute it anew.
        still_mine: Raises StoodDown when this run is no longer ours; called right before each commit.
        clock: Waits between tries.
        ids: Attempt ids and jitter.

    Raises:
        TableBusy: Others kept winning.
        Unknown: No answer came, and the table does not show the change yet.
    """
    task: Task[S, _Flying[S, C] | Prepare, Landing[C]] = _Land(table, app_id, note, compute, keeps, still_mine, ids)
    try:
        return attempt(task, clock=clock, ids=ids, tries=TRIES)
    except GaveUp as err:
        if err.unclear:
            raise Unknown(
                "The table's store gave no answer to the commit, and the table does not show it yet."
            ) from err
        raise _busy() from err


@dataclass(frozen=True, slots=True)
class _Flying(Generic[S, C]):
    """A change that was sent, or was about to be: until its version is taken it may land."""

    change: C
    attempt_id: str
    base: S

    @property
    def wanted(self) -> int:
        """The version it would become."""
        return self.base.version + 1


@dataclass(slots=True)
class _Land(Generic[S, C]):
    """One landing, as a task of the loop."""

    table: Table[S, C]
    app_id: str
    note: Callable[[str], Note]
    compute: Callable[[S, str], C | Prepare | None]
    keeps: Callable[[S, C], C | None]
    still_mine: Callable[[], None]
    ids: Ids
    flying: _Flying[S, C] | None = None
    computed: int = field(default=0)

    @property
    def what(self) -> str:
        """For the sentence when the tries are used up."""
        return "the table's commit"

    def read(self) -> S:
        """The newest version, pinned."""
        return self.table.open()

    def own(self, version: S, *, unclear: bool) -> Done[Landing[C]] | None:  # noqa: ARG002  # a snapshot tells by itself
        """Has the run key's effect landed on this snapshot, and by whom?"""
        if not self.table.has_txn(version, self.app_id):
            return None
        author = self.table.author(version, self.app_id)
        if self.flying is None:
            return Done(AlreadyDone(author))
        if author is None:
            # It may be ours: its files stay.
            return Done(AlreadyDone(None))
        if author.attempt_id == self.flying.attempt_id:
            return Done(Landed(self.flying.change, author.attempt_id, author.version))
        self._drop()
        return Done(AlreadyDone(author))

    def decide(self, version: S) -> _Flying[S, C] | Prepare | Done[Landing[C]]:
        """Send the same again while it may still land, keep a pure append, else compute."""
        if self.flying is not None:
            if version.version < self.flying.wanted:
                return self.flying
            if self.flying.change.append_only:
                kept = self.keeps(version, self.flying.change)
                if kept is not None:
                    return _Flying(kept, self.flying.attempt_id, version)
            self._drop()
            if self.computed > RECOMPUTES:
                raise _busy()
        attempt_id = self.ids.new()
        change = self.compute(version, attempt_id)
        if change is None:
            return Done(Unchanged())
        if isinstance(change, Prepare):
            return change
        self.computed += 1
        return _Flying(change, attempt_id, version)

    def write(
        self,
        version: S,  # noqa: ARG002  # a plan knows its own base
        plan: _Flying[S, C] | Prepare,
    ) -> Done[Landing[C]] | None:
        """Send it; whatever the answer, only a read tells. The pause before it is left out after a good answer."""
        if isinstance(plan, Prepare):
            plan.apply()
            return None
        self.still_mine()
        self.flying = plan
        self.table.commit(plan.base, plan.change, self.note(plan.attempt_id))
        return self.own(self.read(), unclear=False)

    def _drop(self) -> None:
        """Discard the files of an attempt that can't land any more: the version it wanted is taken."""
        if self.flying is not None:
            self.table.discard(self.flying.change)
            self.flying = None


def _busy() -> TableBusy:
    return TableBusy("Other writers kept committing to the table first.", fix="It is safe to run again.")
