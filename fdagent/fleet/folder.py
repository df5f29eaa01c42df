"""One folder of shared records as a poller sees it: one listing a poll, and reads only of what is new or changed.

Guarantees: what is answered is of one listing, each record as it was read for the etag it was listed with or a newer
one; a record that can't be read as one is there with its problem, and hides no other. A listing that fails changes
nothing of what is known. Writes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fdagent.errors import BadRecord, NewerContract
from fdagent.ports import Clock, Entry, Store
from fdagent.stores.sightings import Sightings
from models.ids import id_problem

R = TypeVar("R")
SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class File(Generic[R]):
    """One file: its record, or why it can't be read; `newer` when only a newer version can read it."""

    key: str
    etag: str
    record: R | None
    problem: str = ""
    newer: bool = False


@dataclass(slots=True)
class Folder(Generic[R]):
    """The records under a prefix, by id.

    Args:
        store: The control root.
        prefix: Such as `requests/`.
        parse: Bytes to a record; raises BadRecord or NewerContract.
        sightings: Told of every file at every poll; None where nobody asks how long a file has stayed the same.
    """

    store: Store
    prefix: str
    parse: Callable[[bytes], R]
    clock: Clock
    sightings: Sightings | None = None
    files: dict[str, File[R]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Ids that were new, changed or gone at the last poll."""
    _last: Sequence[Entry] | None = None

    def poll(self) -> Mapping[str, File[R]]:
        """Look: the files now.

        Raises:
            StoreError: The folder or a file of it can't be read just now; call again.
        """
        asked = self.clock.elapsed()
        entries = self.store.list(self.prefix)
        if self.sightings is not None:
            self.sightings.listed(self.prefix, entries, asked=asked)
        self.changed = set()
        if entries is self._last:
            return self.files
        there = {}
        for entry in entries:
            name = entry.key[len(self.prefix) : -len(SUFFIX)]
            if entry.key.endswith(SUFFIX) and not id_problem(name):
                there[name] = entry
        for name in [name for name in self.files if name not in there]:
            del self.files[name]
            self.changed.add(name)
        for name, entry in there.items():
            known = self.files.get(name)
            if known is None or known.etag != entry.etag:
                self._read(name, entry)
        self._last = entries
        return self.files

    def _read(self, name: str, entry: Entry) -> None:
        self.changed.add(name)
        blob = self.store.read(entry.key)
        if blob is None:
            self.files.pop(name, None)
            return
        try:
            self.files[name] = File(entry.key, blob.etag, self.parse(blob.body))
        except NewerContract as err:
            self.files[name] = File(entry.key, blob.etag, None, str(err), newer=True)
        except BadRecord as err:
            self.files[name] = File(entry.key, blob.etag, None, str(err))
