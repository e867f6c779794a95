"""Notices that the database has lost commits, by the objects that it must know.

A database that fails over to a copy which lags behind loses its newest commits, and gives their offsets to other
batches afterwards. So what this broker has in memory is right as long as the database knows the newest objects that it
knew before, and those that were committed since. They are looked for once in a while, in the background.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from strandline.controlplane import BatchRow

# Two brokers' commits may become known here in another order than that of the database.
_LOOKED_FOR_AGAIN: Final = 8
_MANY: Final = 256


class CommittedObjects:
    """Keys of objects whose commits this broker knows of, the newest last. Lives on the event loop."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._newest_file = -1

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to look for."""
        return not self._keys

    @property
    def has_many(self) -> bool:
        """True if they should be looked for soon."""
        return len(self._keys) >= _MANY

    def committed(self, object_key: str) -> None:
        """This broker has committed an object, and perhaps others with it in the same transaction."""
        self._keys[object_key] = None

    def found(self, rows: Sequence[BatchRow]) -> None:
        """A query has returned rows. The newest object among them stands for all that were committed earlier."""
        newest = max(rows, key=lambda row: row.file_id, default=None)
        if newest is not None and newest.file_id > self._newest_file:
            self._newest_file = newest.file_id
            self._keys[newest.object_key] = None

    def to_look_for(self) -> tuple[str, ...]:
        """The keys that the database must know."""
        return tuple(self._keys)

    def looked_for(self, keys: Sequence[str], known: Mapping[str, bool]) -> str | None:
        """Take in which of the keys the database knows, and whether their objects are still in use.

        Returns a key that is lost, if there is one. Keys of unused objects are forgotten, as the database will do.
        """
        for key in keys:
            if key not in known:
                return key
        for key in keys[:-_LOOKED_FOR_AGAIN]:
            self._keys.pop(key, None)
        for key in keys[-_LOOKED_FOR_AGAIN:]:
            if not known[key]:
                self._keys.pop(key, None)
        return None

    def clear(self) -> None:
        """Begin again."""
        self._keys.clear()
        self._newest_file = -1
