"""One partition of a read: opens the segment, loads the range, finds the batch."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.errors import CorruptMessage, StrandlineError
from strandline.reads import FetchIsolation
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.reader.aborted import AbortedTransactionFinder
from strandline.remote.reader.errors import RemoteReadErrors
from strandline.remote.reader.finding import SegmentFinder, not_found
from strandline.remote.reader.locating import Located, locate, planned_end
from strandline.remote.reader.segments import Loading, OpenSegment, OpenSegments
from strandline.remote.reader.values import RemoteRead
from strandline.remote.values import RemoteLogSegmentMetadata

logger = logging.getLogger(__name__)


class Preparation:
    """The progress of one partition of a read. An error is kept in `error`: the other partitions go on."""

    def __init__(
        self,
        request: RemoteRead,
        share: int,
        segments: OpenSegments,
        finder: SegmentFinder,
        aborted: AbortedTransactionFinder,
        errors: RemoteReadErrors,
    ) -> None:
        self.request = request
        self.share = share
        """Bytes that it may return."""
        self.error: StrandlineError | None = None
        self.segment: OpenSegment | None = None
        self.batch: Located | None = None
        """The first batch to return."""
        self.is_local = False
        """No remote segment has a batch at or after the offset."""
        self._segments, self._finder, self._aborted, self._errors = segments, finder, aborted, errors
        self._metadata: RemoteLogSegmentMetadata | None = None
        self._loadings: list[Loading] = []
        self._loaded_to = 0

    @property
    def memory(self) -> int:
        """Memory that its bytes will take."""
        return self.share if self.segment is not None and self.segment.source.takes_memory else 0

    async def open(self) -> None:
        """Find the segment and open it."""
        request = self.request
        with self._keeping_errors():
            await self._open(self._finder.segment_of(request.partition, request.log, request.offset))

    async def _open(self, metadata: RemoteLogSegmentMetadata) -> OpenSegment:
        self._metadata = metadata
        self.segment = await self._segments.open(metadata)
        return self.segment

    async def load(self, *, whole_batch: bool) -> None:
        """Load the bytes of the answer and find where they begin. With `whole_batch` at least one batch."""
        if self.error is not None or not (self.share or whole_batch):
            return
        with self._keeping_errors():
            await self._locate()
            batch = self.batch
            if batch is not None and (whole_batch or batch.end - batch.position <= self.share):
                await self._load_to(batch.position, batch.end)
                await self._load_aborted(batch.position)

    async def load_batch(self) -> None:
        """Load at least the first batch, if that has not been done."""
        if self.batch is None or self.batch.end > self._loaded_to:
            await self.load(whole_batch=True)

    async def _locate(self) -> None:
        segment, offset = self.segment, self.request.offset
        while segment is not None and self.batch is None:
            position = segment.indexes.position_of(offset)
            end = planned_end(segment.indexes, position, self.share, segment.source.size)
            await self._load_to(position, end)
            self.batch = await locate(segment.source, position, offset)
            if self.batch is None:
                following = self._finder.following(self.request.log, segment.metadata)
                self.is_local = following is None
                segment = None if following is None else await self._open(following)
                self._loaded_to = 0

    async def _load_to(self, position: int, end: int) -> None:
        assert self.segment is not None
        if end <= self._loaded_to:
            return
        loading = self.segment.source.load(position, end - position)
        self._loadings.append(loading)
        await loading.wait()
        self._loaded_to = end

    async def _load_aborted(self, position: int) -> None:
        """Load the transaction indexes that the answer will need."""
        request, segment = self.request, self.segment
        if request.isolation is FetchIsolation.TXN_COMMITTED and segment is not None:
            upper = segment.upper_offset(position + self.share)
            await self._aborted.find(request.log, segment.metadata, request.offset, upper)

    @contextmanager
    def _keeping_errors(self) -> Iterator[None]:
        try:
            yield
        except (CorruptMessage, RemoteStorageError) as trouble:
            self._fail(trouble)
        except StrandlineError as error:
            self.error = error
        except Exception as trouble:  # a plugin may raise anything
            logger.exception("a remote read of %s failed", self.request.partition)
            if self._metadata is None:
                raise
            self._fail(trouble)

    def release(self) -> None:
        """The answer has been made."""
        for loading in self._loadings:
            loading.release()
        self._loadings.clear()

    def _fail(self, trouble: Exception) -> None:
        metadata, request = self._metadata, self.request
        assert metadata is not None
        if isinstance(trouble, RemoteResourceNotFound):
            self._segments.forget([metadata.segment_id.id])
            self._finder.forget([metadata.segment_id.id])
            if request.offset < request.log.log_start_offset:
                self.error = not_found(request.log, request.offset)  # it was deleted meanwhile
                return
        self.error = self._errors.error_of(metadata, trouble)
