"""Reads ahead for consumers that catch up, so that their next fetch is answered from memory.

A consumer that continues where its last fetch ended is a stream. From its second fetch on, the bytes that follow are
loaded, in several reads at once, with a window that doubles each time up to a bound that all streams share. At the end
of a segment the next one is opened in time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.remote.ports import RemoteStorageError
from strandline.remote.reader.finding import SegmentFinder
from strandline.remote.reader.log import ReadableLog
from strandline.remote.reader.segments import OpenSegment, OpenSegments
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.tasks import TaskSet

FIRST_WINDOW: Final = 2 * 1024 * 1024
LARGEST_WINDOW: Final = 16 * 1024 * 1024
_MOST_STREAMS: Final = 1024
# A stream without a fetch for so long has ended.
_STREAM_SECONDS: Final = 30.0

# A segment, and a position in it.
_Place: TypeAlias = tuple[UUID, int]


class _RemoteStream:
    """One consumer that catches up on one partition, or several at the same position."""

    __slots__ = ("loaded", "seen_at", "start", "window")

    def __init__(self, start: _Place) -> None:
        self.start = start
        """Where the last answer began."""
        self.window = 0
        """Bytes to load ahead of the stream."""
        self.loaded: dict[UUID, int] = {}
        """Position up to which bytes are loaded or in flight, in this segment and the next."""
        self.seen_at = 0.0


class RemoteReadAhead:
    """Loads what streams will fetch next. Lives on the event loop."""

    def __init__(self, segments: OpenSegments, finder: SegmentFinder, clock: Clock, *, max_bytes: int) -> None:
        """`max_bytes` bounds the windows of all streams together; 0 turns read-ahead off."""
        self._segments, self._finder, self._clock = segments, finder, clock
        self._max_bytes = max_bytes
        self._streams: OrderedDict[_Place, _RemoteStream] = OrderedDict()  # by their next position
        self._tasks = TaskSet()

    def served(self, log: ReadableLog, segment: OpenSegment, start: int, end: int) -> None:
        """A consumer was sent the bytes from `start` to `end` of a segment. Raises KafkaStorageError."""
        if not self._max_bytes:
            return
        now = self._clock.monotonic()
        self._drop_ended(now)
        begun: _Place = (segment.id, start)
        following = self._finder.following(log, segment.metadata) if end >= segment.source.size else None
        next_place: _Place = (segment.id, end) if following is None else (following.segment_id.id, 0)
        stream = self._streams.pop(begun, None)
        if stream is None:
            repeated = self._streams.get(next_place)
            if repeated is not None and repeated.start == begun:
                return  # the poll of one fetch may read more than once
            stream = _RemoteStream(begun)
        else:
            share = self._max_bytes // (len(self._streams) + 1)
            stream.window = min(max(2 * stream.window, FIRST_WINDOW), LARGEST_WINDOW, share)
            self._extend(stream, log, segment, end)
        stream.start, stream.seen_at = begun, now
        self._streams[next_place] = stream

    def _drop_ended(self, now: float) -> None:
        streams = self._streams
        while streams:
            place, oldest = next(iter(streams.items()))
            if len(streams) < _MOST_STREAMS and oldest.seen_at + _STREAM_SECONDS >= now:
                return
            del streams[place]

    def _extend(self, stream: _RemoteStream, log: ReadableLog, segment: OpenSegment, position: int) -> None:
        """Load up to `window` bytes ahead of the stream, when less than half of them are left."""
        size = segment.source.size
        if len(stream.loaded) > 2:
            stream.loaded = {segment.id: stream.loaded.get(segment.id, 0)}
        loaded = max(stream.loaded.get(segment.id, 0), position)
        target = position + stream.window
        if loaded < size and loaded - position < stream.window // 2:
            loaded = segment.source.load_ahead(loaded, target - loaded)
            stream.loaded[segment.id] = loaded
        if loaded >= size and target > size:
            following = self._finder.following(log, segment.metadata)
            if following is not None:
                self._into_next(stream, following, target - size)

    def _into_next(self, stream: _RemoteStream, following: RemoteLogSegmentMetadata, length: int) -> None:
        key = following.segment_id.id
        loaded = stream.loaded.get(key, 0)
        if length - loaded < stream.window // 4:
            return
        segment = self._segments.get(following)
        if segment is not None:
            stream.loaded[key] = segment.source.load_ahead(loaded, length - loaded)
            return
        stream.loaded[key] = length
        self._tasks.start(self._open(following, length), name="remote-read-ahead")

    async def _open(self, following: RemoteLogSegmentMetadata, length: int) -> None:
        try:
            segment = await self._segments.open(following)
            segment.source.load_ahead(0, length)
        except (RemoteStorageError, StrandlineError):
            return  # the fetch of the consumer will report the error

    async def close(self) -> None:
        """Cancel what is being opened."""
        await self._tasks.close()
