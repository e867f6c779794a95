"""The bytes of one remote segment, as a port: in `memory` or in `files`."""

from __future__ import annotations

from typing import Protocol

from strandline.reads import RecordSet
from strandline.records import Buffer


class Loading(Protocol):
    """Bytes that are being loaded. They stay loaded until `release`, which must be called once."""

    async def wait(self) -> None:
        """Return when all of them are loaded. Raises RemoteStorageError; cancelling it does not cancel the reads."""

    def release(self) -> None:
        """The bytes are not needed any more."""


class SegmentBytes(Protocol):
    """The log of one segment, some of which is loaded. Lives on the event loop, never blocks it."""

    @property
    def size(self) -> int:
        """Bytes of the whole log."""

    @property
    def takes_memory(self) -> bool:
        """Whether loaded bytes take memory of this process."""

    def at_hand(self, position: int, length: int) -> int:
        """How many of these bytes, from the first one on, are loaded."""

    def peek(self, position: int, length: int) -> Buffer | None:
        """A few bytes; None if they are not loaded."""

    async def read(self, position: int, length: int) -> Buffer:
        """The same, loaded if necessary. Raises RemoteStorageError."""

    def slice(self, position: int, length: int) -> RecordSet:
        """Loaded bytes, to be sent. Nothing is copied."""

    def load(self, position: int, length: int) -> Loading:
        """Start loading bytes. Raises KafkaStorageError if too many reads wait already."""

    def load_ahead(self, position: int, length: int) -> int:
        """Load bytes ahead, as far as there is spare capacity. Returns the position up to which it does."""

    def close(self) -> None:
        """Drop loaded bytes. Slices that were handed out stay valid."""
