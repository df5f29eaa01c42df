"""One folder of shared records as a poller sees it: one listing a poll, and reads only of what is new or changed.

Guarantees: what is answered is of one listing, each record as it was read for the etag it was listed with or a newer
one; a record that can't be read as one is there with its problem, and hides no other. A listing that fails changes
nothing of what is known, and what changed is told until somebody has taken note of it. A file whose name no record may
have is named and never opened. Writes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fdagent.errors import BadKey, BadRecord, NewerContract
from fdagent.ports import Blob, Clock, Entry, Store
from fdagent.stores.keys import check_key
from fdagent.stores.sightings import Sightings

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
        problem: What is wrong with an id, whatever the file holds; empty: nothing.
    """

    store: Store
    prefix: str
    parse: Callable[[bytes], R]
    clock: Clock
    sightings: Sightings | None = None
    problem: Callable[[str], str] = lambda _name: ""
    files: dict[str, File[R]] = field(default_factory=dict)
    strange: frozenset[str] = frozenset()
    """Keys in the folder that no record may have."""
    _changed: set[str] = field(default_factory=set)
    _last: Sequence[Entry] | None = None
    _etags: dict[str, str] = field(default_factory=dict)
    """Of the last listing that was gone through whole."""

    def poll(self) -> Mapping[str, File[R]]:
        """Look: the files now.

        Raises:
            StoreError: The folder or a file of it can't be read just now; call again.
        """
        asked = self.clock.elapsed()
        entries = self.store.list(self.prefix)
        if self.sightings is not None:
            self.sightings.listed(self.prefix, entries, asked=asked)
        if entries is self._last:
            return self.files
        etags = {entry.key: entry.etag for entry in entries}
        if etags == self._etags:
            self._last = entries
            return self.files
        there = {}
        strange = set()
        for entry in entries:
            if not entry.key.endswith(SUFFIX):
                continue
            name = entry.key[len(self.prefix) : -len(SUFFIX)]
            if name in self.files or ("/" not in name and _may_be(entry.key)):
                there[name] = entry
            else:
                strange.add(entry.key)
        for name in [name for name in self.files if name not in there]:
            del self.files[name]
            self._changed.add(name)
        for name, entry in there.items():
            known = self.files.get(name)
            if known is None or known.etag != entry.etag:
                self._read(name, entry)
        self.strange = frozenset(strange)
        self._last, self._etags = entries, etags
        return self.files

    @property
    def changed(self) -> frozenset[str]:
        """Ids that were new, changed or gone since somebody took note."""
        return frozenset(self._changed)

    def noted(self) -> None:
        """What changed has been taken note of."""
        self._changed.clear()

    def met(self, name: str, key: str, blob: Blob) -> File[R]:
        """The file that these bytes are, which have just been read."""
        problem, record, newer = self.problem(name), None, False
        if not problem:
            try:
                record = self.parse(blob.body)
            except (BadRecord, NewerContract) as err:
                problem, newer = str(err), isinstance(err, NewerContract)
        self.files[name] = File(key, blob.etag, record, problem, newer=newer)
        return self.files[name]

    def _read(self, name: str, entry: Entry) -> None:
        self._changed.add(name)
        blob = self.store.read(entry.key)
        if blob is None:
            self.files.pop(name, None)
        else:
            self.met(name, entry.key, blob)


def _may_be(key: str) -> bool:
    try:
        check_key(key)
    except BadKey:
        return False
    return True
