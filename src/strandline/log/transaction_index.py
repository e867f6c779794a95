"""The transaction index: aborted transactions whose marker is in a segment."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from strandline.errors import KafkaStorageError
from strandline.log.files import TXN_INDEX, offset_name, read_whole, remove_if_there, rename_if_there

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTxn(NamedTuple):
    """One aborted transaction. `last_offset` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """The last stable offset right after the marker: where the next open transaction starts, or marker + 1."""


class TransactionIndex:
    """The aborted transactions that ended in one segment, in the order of their markers.

    The file exists only if there is an entry; entries are written at once, since they are few, but for those of an
    index that is rebuilt.
    """

    __slots__ = ("_directory", "_entries", "_exists", "_is_being_rebuilt", "_state", "base_offset")

    def __init__(self, directory: str, base_offset: int, *, exists: bool) -> None:
        self._directory = directory
        self._state = ""
        self._exists = exists
        self._is_being_rebuilt = False
        self._entries: list[AbortedTxn] | None = None if exists else []
        self.base_offset = base_offset

    @property
    def path(self) -> str:
        """The file at present."""
        return os.path.join(self._directory, offset_name(self.base_offset, TXN_INDEX) + self._state)

    @property
    def is_empty(self) -> bool:
        """True if no transaction was aborted in this segment. Reads no file."""
        return not self._exists

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._loaded())

    def ending_from(self, offset: int) -> Iterator[AbortedTxn]:
        """Those whose marker is at `offset` or later: what a read at that offset may have to tell."""
        entries = self._loaded()
        return (entries[at] for at in range(bisect_left(entries, offset, key=_marker), len(entries)))

    def _loaded(self) -> list[AbortedTxn]:
        entries = self._entries
        if entries is None:
            self._entries = entries = list(self._read())
        return entries

    def _read(self) -> Iterator[AbortedTxn]:
        try:
            data = read_whole(self.path)
        except FileNotFoundError:
            self._exists = False
            return
        if len(data) % _ENTRY.size:
            raise KafkaStorageError(f"{self.path} ends inside an entry.")
        last = -1
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTxn(*fields)
            if version != _VERSION or entry.last_offset <= last or entry.last_offset < self.base_offset:
                raise KafkaStorageError(f"{self.path} holds an impossible entry: {entry}.")
            last = entry.last_offset
            yield entry

    def is_sane(self) -> bool:
        """False if the file is damaged: it has to be rebuilt."""
        try:
            self._loaded()
        except KafkaStorageError:
            return False
        return True

    def append(self, entry: AbortedTxn) -> None:
        """Add a transaction. Markers must ascend."""
        entries = self._loaded()
        if not self._is_being_rebuilt:
            self._write([entry], len(entries))
        entries.append(entry)
        self._exists = True

    def _write(self, entries: Sequence[AbortedTxn], number: int) -> None:
        data = b"".join([_ENTRY.pack(_VERSION, *entry) for entry in entries])
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(fd, data, number * _ENTRY.size)
        finally:
            os.close(fd)

    def begin_rebuild(self) -> None:
        """Delete the file: all entries come again, and are written together by `finish_rebuild`."""
        self.remove()
        self._is_being_rebuilt = True

    def finish_rebuild(self) -> None:
        """Write the entries that have come."""
        self._is_being_rebuilt = False
        if self._exists:
            self._write(self._loaded(), 0)

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or above."""
        if not self._exists:
            return
        entries = self._loaded()
        keep = sum(1 for entry in entries if entry.last_offset < offset)
        del entries[keep:]
        if entries:
            os.truncate(self.path, keep * _ENTRY.size)
        else:
            self.remove()

    def remove(self) -> None:
        """Delete the file."""
        if self._exists:
            remove_if_there(self.path)
        self._exists = False
        self._entries = []

    def rename(self, state: str) -> None:
        """Give the file another state suffix; "" for none."""
        before = self.path
        self._state = state
        if self._exists:
            rename_if_there(before, self.path)

    def assume_state(self, state: str) -> None:
        """Say which state suffix the file has already."""
        self._state = state

    def move_to(self, directory: str) -> None:
        """Follow the log to another directory name."""
        self._directory = directory


def _marker(entry: AbortedTxn) -> int:
    return entry.last_offset
