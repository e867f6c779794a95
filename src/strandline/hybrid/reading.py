"""Reads of one partition: what reads an extent, and what comes of a read that memory cannot answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from strandline.errors import StrandlineError
from strandline.model import Offset
from strandline.reads import FetchIsolation, ReadResult


class TierReader(Protocol):
    """Answers reads that need a database, an object store or a disk."""

    always_gives_a_batch: ClassVar[bool]
    """Whether the first batch comes whole even if the caller's `min_one_message` is False."""

    async def read(
        self,
        requests: Sequence[Any],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """Read several partitions of one tier at the same time, fairly. Errors are answers.

        Records that are not wanted any more when they arrive are kept for later reads, and neither given nor counted.
        """


class PendingRead(NamedTuple):
    """A read that cannot be answered from memory: what to ask of which reader."""

    reader: TierReader
    request: Any
    """In the form that this reader takes."""
    max_wait_s: float | None = None
    """How long a Fetch waits for it, whatever its client's max.wait.ms says; None: as long as the client does."""


class FinalRead(NamedTuple):
    """An answer that ends the wait of a Fetch: waiting would not bring more records.

    A Fetch is answered with it, however small it is, and does not read it again: its tier has counted it.
    """

    result: ReadResult | StrandlineError
    max_wait_s: float
    """How long the Fetch waits for pending reads of other partitions, whatever its client's max.wait.ms says."""


class Engine(Protocol):
    """Reads one extent of one partition."""

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        """Records from `offset` on, which the extent holds, and from its tier alone. Does not wait.

        At most `max_bytes`, unless `min_one_message` and the first batch is larger. Raises StrandlineError.
        """

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        """How many bytes a read from `offset` on would find; None if only a read can tell."""
