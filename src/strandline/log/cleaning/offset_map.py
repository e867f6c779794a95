"""The newest offset of each key in the dirty part of a log."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

# A short key is kept as it is. Of a long one a digest is kept, one byte longer than any short key can be.
_LONGEST_KEPT: Final = 32
# What an entry costs beside its key: its place in the table, the headers of two objects, and the offset.
_ENTRY_BYTES: Final = 112


class OffsetMap:
    """Maps keys to offsets until its memory is used up.

    `latest_offset` is how far the log has been read into the map: beyond it nothing is known, and a record there has
    to stay whatever its key.
    """

    __slots__ = ("_budget", "_offsets", "_used", "latest_offset")

    def __init__(self, budget_bytes: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._budget = budget_bytes
        self._used = 0
        self.latest_offset = -1

    def put(self, key: bytes, offset: int) -> bool:
        """Remember the offset of a key. False if there is no room for a key that is new."""
        name = key if len(key) <= _LONGEST_KEPT else _digest(key)
        if name not in self._offsets:
            # The first batch always fits as a whole: a pass that maps none would never get on.
            if self._used + _ENTRY_BYTES + len(name) > self._budget and self.latest_offset >= 0:
                return False
            self._used += _ENTRY_BYTES + len(name)
        self._offsets[name] = offset
        return True

    def get(self, key: bytes) -> int:
        """The newest offset of a key; -1 if it is not in the dirty part."""
        return self._offsets.get(key if len(key) <= _LONGEST_KEPT else _digest(key), -1)

    def __len__(self) -> int:
        return len(self._offsets)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_LONGEST_KEPT).digest() + b"\0"
