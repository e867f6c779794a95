"""What the offset index and the time index share: a file of fixed-size entries that grows by appending."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import ClassVar, Final

from strandline.log.files import offset_name, read_whole, remove_if_there, rename_if_there


class IndexFile(ABC):
    """Entries of a segment in memory and on disk.

    The file is read when first asked for and forgotten again under memory pressure (`LoadedIndexes`). New entries stay
    in memory until `write()`: an index can always be rebuilt from its segment, and after a crash it is. Kafka
    preallocates index files and trims them on close; ours only ever hold real entries.
    """

    __slots__ = ("_directory", "_is_longer_on_disk", "_state", "_written", "base_offset")

    ENTRY_SIZE: ClassVar[int]
    SUFFIX: str

    def __init__(self, directory: str, base_offset: int) -> None:
        self._directory = directory
        self._state = ""
        self._written = 0
        self._is_longer_on_disk = False
        self.base_offset = base_offset

    @property
    def path(self) -> str:
        """The file at present."""
        return os.path.join(self._directory, offset_name(self.base_offset, self.SUFFIX) + self._state)

    def create(self) -> None:
        """Create an empty file; an existing one is truncated."""
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
        self.reset()

    def reset(self) -> None:
        """Hold no entries, and expect none on disk."""
        self._start_empty()
        self._written = 0
        self._is_longer_on_disk = False

    def rename(self, state: str) -> None:
        """Give the file another state suffix, such as `.deleted`; "" for none."""
        before = self.path
        self._state = state
        rename_if_there(before, self.path)

    def assume_state(self, state: str) -> None:
        """Say which state suffix the file has already."""
        self._state = state

    def move_to(self, directory: str) -> None:
        """Follow the log to another directory name."""
        self._directory = directory

    def remove(self) -> None:
        """Delete the file."""
        remove_if_there(self.path)

    def write(self) -> bool:
        """Bring the file up to date. True if there was something to write. Nothing is forced to disk."""
        data = self._unwritten()
        if not data and not self._is_longer_on_disk:
            return False
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            position = self._written * self.ENTRY_SIZE
            if self._is_longer_on_disk:
                os.ftruncate(fd, position)
            os.pwrite(fd, data, position)
        finally:
            os.close(fd)
        self._written += len(data) // self.ENTRY_SIZE
        self._is_longer_on_disk = False
        return True

    def _read_entries(self) -> bytes:
        """The whole entries on disk; a zero tail that Kafka preallocated is left out."""
        try:
            data = read_whole(self.path)
        except FileNotFoundError:
            data = b""
        size = len(data) - len(data) % self.ENTRY_SIZE
        if size and not any(data[size - self.ENTRY_SIZE : size]):
            # Only the tail can be zeros: the first entry may be all zeros in theory, later ones never are.
            size = len(data[:size].rstrip(b"\0"))
            size += -size % self.ENTRY_SIZE
        self._written = size // self.ENTRY_SIZE
        self._is_longer_on_disk = size != len(data)
        return data[:size]

    def _cut(self, entries: int) -> None:
        """Note that only the first `entries` are valid."""
        if entries < self._written:
            self._written = entries
            self._is_longer_on_disk = True

    @property
    def is_written(self) -> bool:
        """True if the disk holds everything."""
        return not self._is_longer_on_disk and not self._unwritten()

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """Size of the entries held in memory."""

    @abstractmethod
    def unload(self) -> None:
        """Forget the entries held in memory; they must be on disk."""

    @abstractmethod
    def _start_empty(self) -> None:
        """Hold no entries from now on."""

    @abstractmethod
    def _unwritten(self) -> bytes:
        """The bytes of the entries that are not in the file yet."""


class LoadedIndexes:
    """Bounds the memory of indexes loaded for reading old segments: the least recently used are unloaded first."""

    __slots__ = ("_bytes", "_capacity", "_loaded")

    DEFAULT_CAPACITY: Final = 16 * 1024 * 1024

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self._capacity = capacity
        self._bytes = 0
        self._loaded: OrderedDict[IndexFile, int] = OrderedDict()

    def touch(self, index: IndexFile) -> None:
        """Note that `index` is in use, and unload others if too much is loaded."""
        if index in self._loaded:
            self._loaded.move_to_end(index)
            return
        size = index.memory_bytes
        self._loaded[index] = size
        self._bytes += size
        while self._bytes > self._capacity and len(self._loaded) > 1:
            other, freed = self._loaded.popitem(last=False)
            self._bytes -= freed
            if other.is_written:
                other.unload()

    def forget(self, index: IndexFile) -> None:
        """Drop an index whose segment is deleted."""
        self._bytes -= self._loaded.pop(index, 0)

    def __len__(self) -> int:
        return len(self._loaded)

    @property
    def loaded_bytes(self) -> int:
        """Memory held by the indexes known here."""
        return self._bytes
