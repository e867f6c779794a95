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
# The database remembers objects for a day after they were deleted.
REMEMBERED_SECONDS: Final = 12 * 3600.0


class CommittedObjects:
    """Keys of objects whose commits this broker knows of, the newest last. Lives on the event loop.

    This broker's own objects and those that were found are kept apart: a reader that catches up finds one newer object
    after the other, all of which are older than the own ones.
    """

    def __init__(self) -> None:
        self._own: dict[str, None] = {}
        self._found: dict[str, None] = {}
        self._newest_file = -1
        self._unused_since: dict[str, float] = {}

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to look for."""
        return not (self._own or self._found)

    @property
    def has_many(self) -> bool:
        """True if they should be looked for soon."""
        return len(self._own) + len(self._found) >= _MANY

    def committed(self, object_key: str) -> None:
        """This broker has committed an object, and perhaps others with it in the same transaction."""
        self._own[object_key] = None

    def found(self, rows: Sequence[BatchRow]) -> None:
        """A query has returned rows. The newest object among them stands for all that were committed earlier."""
        newest = max(rows, key=lambda row: row.file_id, default=None)
        if newest is not None and newest.file_id > self._newest_file:
            self._newest_file = newest.file_id
            self._found[newest.object_key] = None

    def to_look_for(self, now: float) -> tuple[str, ...]:
        """The keys that the database must know."""
        for key in [key for key, since in self._unused_since.items() if now - since >= REMEMBERED_SECONDS]:
            self._forget(key)
        return (*self._own, *(key for key in self._found if key not in self._own))

    def looked_for(self, keys: Sequence[str], known: Mapping[str, bool], now: float) -> str | None:
        """Take in which of the keys the database knows, and whether their objects are still in use.

        Returns a key that is lost, if there is one. Those of unused objects stand for earlier ones, too, as long as the
        database remembers them.
        """
        for key in keys:
            if key not in known:
                return key
        for kept in (self._own, self._found):
            for key in [key for key in kept if key in known][:-_LOOKED_FOR_AGAIN]:
                del kept[key]
        for key, is_used in known.items():
            if not is_used and (key in self._own or key in self._found):
                self._unused_since.setdefault(key, now)
        for key in self._unused_since.keys() - self._own.keys() - self._found.keys():
            del self._unused_since[key]
        return None

    def _forget(self, key: str) -> None:
        self._own.pop(key, None)
        self._found.pop(key, None)
        self._unused_since.pop(key, None)
        if not self._found:
            self._newest_file = -1

    def clear(self) -> None:
        """Begin again."""
        self._own.clear()
        self._found.clear()
        self._unused_since.clear()
        self._newest_file = -1
