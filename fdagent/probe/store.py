"""Does a store keep what all sharing rests on: conditional create, replace and delete?

Guarantees: asks the store itself, with three records of its own beside the shared ones, and removes them; what a probe
that was killed left behind is removed by the next one, an hour later. An answer that was lost is settled by reading
back. Touches no record of anybody else. Does not prove that the conditions hold in a race: `verify` does.
"""

import contextlib
from collections.abc import Callable

from fdagent.errors import Conflict, StoreError, Unknown
from fdagent.ports import Absent, Condition, Ids, Match, Store
from fdagent.probe.findings import Finding, error, ok, warning

PREFIX = "_probe-"
STRAY_SECONDS = 3600.0
YOUNG_SECONDS = 60.0
"""A record that was written a moment ago and is older than this by the store says that its two clocks differ."""
TRIES = 3
"""How often a delete whose answer is lost is tried."""
FIX = "Don't run agents on this store: two of them could write one table at once. Report it to whoever runs the store."


def probe(store: Store, ids: Ids) -> list[Finding]:
    """Try each condition once where it holds and once where it doesn't.

    Args:
        store: A control root.
        ids: Names the three records.

    Returns:
        One finding each for create, replace, delete, the listing and the store's clocks; fewer when the store can't
        be used, which is then an error among them; and a warning for what could not be removed.
    """
    probing = _Probe(store, f"{PREFIX}{ids.new()}")
    found: list[Finding] = []
    steps: tuple[Callable[[], Finding], ...] = (
        probing.create,
        probing.replace,
        probing.delete,
        probing.listing,
        probing.clocks,
    )
    try:
        found += [step() for step in steps]
    except StoreError as err:
        found.append(error("store", err.what, err.fix or "Mend it, and check again."))
    return found + probing.clean()


class _Probe:
    """The three records of one probe."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self._prefix = store, prefix
        self._created, self._replaced, self._deleted = (f"{prefix}-{n}.json" for n in (1, 2, 3))

    def create(self) -> Finding:
        """A record is created where there is none, and not where there is one."""
        key = self._created
        if not self._write(key, b'{"n": 1}', Absent()):
            return error("create", "A record was refused where there was none.", FIX)
        again = self._write(key, b'{"n": 2}', Absent())
        if again or self._body(key) != b'{"n": 1}':
            return error("create", "A second create of one record was accepted.", FIX)
        return ok("create", "A record is created once; a second create is refused.")

    def replace(self) -> Finding:
        """A record is replaced in the version that was read, and in no older one."""
        key = self._replaced
        first = self._write(key, b'{"n": 1}', Absent())
        second = self._write(key, b'{"n": 2}', Match(first))
        if not second or second == first:
            return error("replace", "The version that was read could not be replaced by a new one.", FIX)
        stale = self._write(key, b'{"n": 3}', Match(first))
        if stale or self._body(key) != b'{"n": 2}':
            return error("replace", "A version that is no longer there was replaced.", FIX)
        return ok("replace", "A record is replaced in the version that was read; an older one is refused.")

    def delete(self) -> Finding:
        """A record is deleted in the version that was read, and in no older one."""
        key = self._deleted
        first = self._write(key, b'{"n": 1}', Absent())
        second = self._write(key, b'{"n": 2}', Match(first))
        stale = self._delete(key, first)
        if stale or self._body(key) != b'{"n": 2}':
            return error("delete", "A delete of a version that is no longer there was accepted.", FIX)
        deleted = any(self._delete(key, second) for _ in range(TRIES))
        if not deleted or self._body(key) is not None:
            return error("delete", "The version that was read could not be deleted.", FIX)
        return ok("delete", "A record is deleted in the version that was read; an older one is refused.")

    def listing(self) -> Finding:
        """A listing names what reads name, and nothing that was deleted."""
        listed = {entry.key: entry.etag for entry in self._store.list(self._prefix)}
        blobs = {key: self._store.read(key) for key in (self._created, self._replaced)}
        if listed != {key: "" if blob is None else blob.etag for key, blob in blobs.items()}:
            return error("listing", "A listing does not name the versions that reads name.", FIX)
        return ok("listing", "A listing names the versions that reads name.")

    def clocks(self) -> Finding:
        """The store stamps what it writes by the clock that it answers with."""
        blob = self._store.read(self._replaced)
        age = None if blob is None else blob.age
        if age is None or age > YOUNG_SECONDS:
            seems = "of no age that makes sense" if age is None else f"{age:.0f} s old"
            return warning(
                "clocks",
                f"A record that was written just now is {seems} by the store: its two clocks differ.",
                "Ages that commands show are wrong there; nothing is decided by them.",
            )
        return ok("clocks", "A record that was written just now is new by the store's clocks.")

    def clean(self) -> list[Finding]:
        """Remove what is left, and what older probes left."""
        left = [key for key in (self._created, self._replaced, self._deleted) if not self._gone(key)]
        with contextlib.suppress(StoreError):
            for entry in self._store.list(PREFIX):
                if entry.age is not None and entry.age > STRAY_SECONDS:
                    self._gone(entry.key)
        if not left:
            return []
        return [warning("cleaning up", f"{', '.join(left)} could not be removed.", "The next check removes them.")]

    def _gone(self, key: str) -> bool:
        """Delete a record of ours in whatever version it is; is it gone?"""
        for _ in range(TRIES):
            with contextlib.suppress(StoreError):
                blob = self._store.read(key)
                if blob is None:
                    return True
                self._store.delete(key, Match(blob.etag))
        return False

    def _write(self, key: str, body: bytes, condition: Condition) -> str:
        """The new etag; empty when the write was refused. What is neither seen nor refused proves nothing: raised."""
        try:
            return self._store.write(key, body, condition)
        except Conflict:
            return ""
        except Unknown:
            blob = self._store.read(key)
            if blob is None or blob.body != body:
                raise
            return blob.etag

    def _delete(self, key: str, etag: str) -> bool:
        """Was the delete accepted?"""
        try:
            self._store.delete(key, Match(etag))
        except Conflict:
            return False
        except Unknown:
            return self._body(key) is None
        return True

    def _body(self, key: str) -> bytes | None:
        blob = self._store.read(key)
        return None if blob is None else blob.body
