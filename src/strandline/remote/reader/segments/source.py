"""The bytes of one remote segment, wherever they come from: memory (`chunks`) or files (`files`)."""

from __future__ import annotations

from typing import Protocol

from strandline.reads import RecordSet
from strandline.records import Buffer


class Loading(Protocol):
    """Bytes on their way. They stay at hand until `release`, which has to be called once."""

    async def wait(self) -> None:
        """Return when all of them are there. Raises RemoteStorageError; cancelling it does not end the reads."""

    def release(self) -> None:
        """Nobody needs them any more."""


class SegmentBytes(Protocol):
    """The log of one segment, `size` bytes, some of which are at hand. Lives on the event loop, never blocks it."""

    @property
    def size(self) -> int:
        """Bytes of the whole log."""

    @property
    def takes_memory(self) -> bool:
        """Whether what is loaded takes memory of this process."""

    def at_hand(self, position: int, length: int) -> int:
        """How many of these bytes, from the first one on, could be sent now."""

    def peek(self, position: int, length: int) -> Buffer | None:
        """A few bytes; None if they are not at hand."""

    async def read(self, position: int, length: int) -> Buffer:
        """The same, brought here if need be. Raises RemoteStorageError."""

    def slice(self, position: int, length: int) -> RecordSet:
        """Bytes that are at hand or were loaded, to be sent. Nothing is copied."""

    def load(self, position: int, length: int) -> Loading:
        """Have bytes brought. Raises KafkaStorageError if too many reads wait already."""

    def load_ahead(self, position: int, length: int) -> int:
        """The same without waiting for them, as far as nobody else needs the storage. Returns how far it went."""

    def close(self) -> None:
        """Let go of what is kept. Who has slices keeps them."""
