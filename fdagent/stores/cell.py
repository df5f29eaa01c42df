"""One record of a store as the loop of `fdagent/attempt.py` sees it.

Guarantees: each write is one conditional write of the store, chosen by the arrow alone; the tag is the store's etag, and
empty for an absent record. Does not guarantee anything about the record's text: `parse` and `dump` do (models/codec.py).
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from fdagent.ports import Absent, Match, Store
from models.step import Write

R = TypeVar("R")


class StoreCell(Generic[R]):
    """The record under `key` of `store`.

    Args:
        store: Where it lies.
        key: Under which key.
        parse: Bytes to record; raises BadRecord.
        dump: Record to bytes.
    """

    def __init__(self, store: Store, key: str, parse: Callable[[bytes], R], dump: Callable[[R], bytes]) -> None:
        self._store = store
        self._key = key
        self._parse = parse
        self._dump = dump

    def read(self) -> tuple[R | None, str]:
        """The record and its etag; (None, "") when there is none."""
        blob = self._store.read(self._key)
        return (None, "") if blob is None else (self._parse(blob.body), blob.etag)

    def write(self, how: Write, record: R | None, tag: str) -> str:
        """The one conditional write; the new etag, empty after a delete. Raises what the store raises."""
        if how is Write.DELETE:
            self._store.delete(self._key, Match(tag))
            return ""
        if record is None:
            raise AssertionError(f"{how.value} of {self._key} without a record")
        return self._store.write(self._key, self._dump(record), Absent() if how is Write.CREATE else Match(tag))
