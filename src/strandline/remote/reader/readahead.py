"""Reading ahead for consumers that catch up: what they will ask for next is at hand when they do.

A consumer that goes on where it stopped is a stream. Once a stream has gone on, what lies in front of it is read, in
several reads at once, twice as much each time, up to a bound that all streams share; beyond the end of a segment with
the next one, which is opened in time.
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
from strandline.remote.reader.segments.opened import OpenSegment, OpenSegments
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.tasks import TaskSet

FIRST_WINDOW: Final = 2 * 1024 * 1024
LARGEST_WINDOW: Final = 16 * 1024 * 1024
_MOST_STREAMS: Final = 1024
# A stream that has not been seen for so long has ended, or is somebody else's now.
_STREAM_SECONDS: Final = 30.0

# A segment, and a position in it.
_Place: TypeAlias = tuple[UUID, int]


class _ConsumerStream:
    """One consumer of one partition on its way, or several that go together."""

    __slots__ = ("loaded", "seen_at", "start", "window")

    def __init__(self, start: _Place) -> None:
        self.start = start
        """Where the last answer began."""
        self.window = 0
        """How many bytes in front of the stream are wanted."""
        self.loaded: dict[UUID, int] = {}
        """How far reading ahead has come, in this segment and in the next."""
        self.seen_at = 0.0


class RemoteReadAhead:
    """Reads what streams will ask for next. Lives on the event loop."""

    def __init__(self, segments: OpenSegments, finder: SegmentFinder, clock: Clock, *, max_bytes: int) -> None:
        """`max_bytes` is what all streams together may have in front of them; 0 turns reading ahead off."""
        self._segments, self._finder, self._clock = segments, finder, clock
        self._max_bytes = max_bytes
        self._streams: OrderedDict[_Place, _ConsumerStream] = OrderedDict()  # by where they will go on
        self._tasks = TaskSet()

    def served(self, log: ReadableLog, segment: OpenSegment, start: int, end: int) -> None:
        """A consumer was given the bytes from `start` to `end` of a segment. Raises KafkaStorageError."""
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
                return  # a poll may look more than once
            stream = _ConsumerStream(begun)
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

    def _extend(self, stream: _ConsumerStream, log: ReadableLog, segment: OpenSegment, position: int) -> None:
        """Have `window` bytes in front of the stream, as soon as half of them are used up."""
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

    def _into_next(self, stream: _ConsumerStream, following: RemoteLogSegmentMetadata, length: int) -> None:
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
            return  # the consumer will ask for it, and see why

    async def close(self) -> None:
        """End what is under way."""
        await self._tasks.close()
