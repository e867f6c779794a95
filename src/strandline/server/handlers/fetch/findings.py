"""What one look at the places of a request has found."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.hybrid.reading import PendingRead
from strandline.server.fetch_sessions import Place
from strandline.wire.fetch_codec import FetchAnswer


@dataclass(slots=True)
class Findings:
    """Answers for places that were read, now or before, and the reads that the others need."""

    answers: dict[Place, FetchAnswer]
    pending: dict[Place, PendingRead]
    size: int
    """How many bytes of records the answers have."""
    memory: int
    """How many of them are in memory."""
    must_be_told: bool
    """Whether an answer must not wait: an error that will not pass, or a diverging epoch."""
    has_trouble: bool
    """Whether a read has failed for a reason that may pass."""

    def is_enough(self, min_bytes: int) -> bool:
        """Whether a request that waits for `min_bytes` may be answered."""
        return self.must_be_told or self.size >= min_bytes

    def is_worth_sending(self, min_bytes: int) -> bool:
        """Whether it may be answered without what is pending."""
        return self.must_be_told or (self.size > 0 and self.size >= min_bytes)
