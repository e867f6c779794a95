"""A partition as request handlers see it, whatever tiers hold its records."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.compiled.attributes import mypyc_attr
from strandline.hybrid.layout import Extent, PartitionLayout, joined
from strandline.hybrid.parts.part import LogPart, NewestPart, PartitionAppends
from strandline.hybrid.parts.searching import PartsSearch
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.model import NO_EPOCH, LeaderEpoch, Offset, TimestampMs, TopicPartition
from strandline.reads import FetchIsolation, FoundOffset, ReadResult


@mypyc_attr(native_class=False)  # sessions of Fetch refer to it weakly
class ServedPartition:
    """One partition that this broker serves: a layout over the parts of its log. Lives on the event loop.

    Its newest part knows the leader and the ends of the log, and whom to notify of changes. Which tier reads an offset
    is decided in `extent_of`, once for all requests. A partition that changes its parts, as by a switch, is another
    `ServedPartition`.
    """

    __slots__ = ("__weakref__", "_basis", "_layout", "appends", "newest", "topic_partition")

    def __init__(self, newest: NewestPart) -> None:
        self.newest = newest
        self.topic_partition: TopicPartition = newest.topic_partition
        self.appends: PartitionAppends = newest.appends
        """For producers."""
        self._basis: tuple[PartitionLayout, ...] = ()
        self._layout = PartitionLayout()

    @property
    def parts(self) -> Iterator[LogPart]:
        """The parts of its log, newest first."""
        part: LogPart | None = self.newest
        while part is not None:
            yield part
            part = part.older

    # Reading: nothing here waits

    @property
    def layout(self) -> PartitionLayout:
        """Which tier serves which offsets now."""
        newest = self.newest
        if newest.older is None:
            return newest.layout
        basis = tuple(part.layout for part in self.parts)
        if basis != self._basis:
            self._basis, self._layout = basis, joined(basis)
        return self._layout

    def extent_of(self, offset: Offset) -> Extent:
        """The extent that serves a read of this offset. Raises StrandlineError if there is none."""
        newest = self.newest
        layout = newest.layout if newest.older is None else self.layout
        for extent in layout.extents:
            if extent.start <= offset < extent.end:
                return extent
        growing = layout.extent_of(offset)  # that of the largest offset, if any: it knows that nothing is there
        if growing is not None:
            return growing
        *_, oldest = self.parts
        raise oldest.refusal(offset)

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        """Records from `offset` on, from the tier that the layout names, and from that tier alone.

        At most `max_bytes`, unless `min_one_message` and the first batch is larger. Raises StrandlineError.
        """
        engine = self.extent_of(offset).engine
        return engine.read_now(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        """How many bytes a read from `offset` on would find; None if only a read can tell."""
        extent = self.layout.extent_of(offset)
        return None if extent is None else extent.engine.available_bytes(offset, isolation)

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """The largest leader epoch up to `epoch`, and where it ended as far as this broker knows; (-1, -1): unknown."""
        newest = self.newest
        if newest.older is not None:
            for part in reversed(tuple(self.parts)):
                ended = part.known_end_of_epoch(epoch)
                if ended is not None:
                    return ended
        return newest.known_end_of_epoch(epoch)

    # Questions that may have to ask a database or a store. All raise StrandlineError

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        """ListOffsets: a special timestamp, or the first record at or after a time, in whatever tier.

        The client waits `timeout_ms` for remote storage; 0: as long as the broker's setting says.
        """
        newest = self.newest
        if newest.older is None:
            return await newest.find(
                timestamp, isolation=isolation, current_leader_epoch=current_leader_epoch, timeout_ms=timeout_ms
            )
        newest.check_leader(current_leader_epoch)
        return await PartsSearch(newest, newest.older, isolation=isolation, timeout_ms=timeout_ms).find(timestamp)

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch: the largest epoch at or below `epoch`, and where it ended."""
        newest = self.newest
        newest.check_leader(current_leader_epoch)
        if newest.older is not None:
            for part in reversed(tuple(self.parts)):
                ended = await part.end_of_epoch(epoch)
                if ended is not None:
                    return ended
        return await newest.end_of_epoch(epoch)
