"""Record batches in memory on their way to a client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MemorySlices:
    """Record batches in memory, ready to be sent. The views stay valid while they are held."""

    parts: list[memoryview]
    length: int

    def read(self) -> bytes:
        """The bytes themselves, in one piece."""
        return b"".join(self.parts)
