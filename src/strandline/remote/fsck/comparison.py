"""The comparison: one pass over the listing, then a second look at everything that seemed wrong.

Brokers may run meanwhile. They write the metadata of a segment before its first object, and DELETE_SEGMENT_STARTED
before they delete its first object. So suspects are judged after the metadata has been read to its end once more:
objects that have metadata by then are no orphans, and a segment that is still in COPY_SEGMENT_FINISHED was not being
deleted. Holes are looked for between the log start at the end and the local log start at the beginning of the run, so
that copies and deletions during the run do not matter.

Memory: the metadata of live segments (some hundreds of bytes each), the ids of one partition's listed segments, one
page of the listing, and the findings. Not the listing, nor the history in the metadata topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from strandline.clock import Clock
from strandline.model import TopicIdPartition
from strandline.objects import ObjectNotFound, ObjectStore
from strandline.objects.comparing import Finding, Progress, for_each, ignore_progress
from strandline.remote.fsck.listing import Listing, SegmentObjects
from strandline.remote.fsck.partitions import PartitionJudge, PartitionsJudged
from strandline.remote.fsck.replay import MetadataReplay
from strandline.remote.fsck.segment import SegmentDamaged, SegmentIncomplete, check_content, check_sizes
from strandline.remote.fsck.values import (
    ClusterState,
    FsckSource,
    RemoteFindingKind,
    RemoteFsckOptions,
    RemoteFsckReport,
)
from strandline.remote.storage import partition_directory, segment_name
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState

_PAGE: Final = 1000
# Each of them holds some megabytes.
_DEEP_AT_ONCE: Final = 4
_FINISHED: Final = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_KEPT: Final = "; not deleted:"


class _Broken(NamedTuple):
    """A segment in COPY_SEGMENT_FINISHED that is incomplete or damaged."""

    metadata: RemoteLogSegmentMetadata
    trouble: SegmentIncomplete | SegmentDamaged


class _WithoutMetadata(NamedTuple):
    """Objects in the directory of a known partition that belong to no known segment."""

    partition: TopicIdPartition
    objects: SegmentObjects


@dataclass(slots=True)
class _Unknown:
    """The objects in the directory of a partition without metadata."""

    objects: int = 0
    bytes: int = 0
    modified_ms: int = 0

    def add(self, segment: SegmentObjects) -> None:
        self.objects += len(segment.sizes)
        self.bytes += segment.size
        self.modified_ms = max(self.modified_ms, segment.modified_ms)


@dataclass(slots=True)
class _Suspects:
    """What seemed wrong in the pass over the listing."""

    broken: list[_Broken] = field(default_factory=list)
    without_metadata: list[_WithoutMetadata] = field(default_factory=list)
    unknown: dict[str, _Unknown] = field(default_factory=dict)


class RemoteFsck:
    """One comparison. Changes nothing, unless `options.repair` is set."""

    def __init__(
        self,
        source: FsckSource,
        store: ObjectStore,
        prefix: str,
        clock: Clock,
        options: RemoteFsckOptions,
        progress: Progress = ignore_progress,
    ) -> None:
        """`prefix` is the prefix of all keys in the store."""
        self._source, self._store, self._prefix, self._clock = source, store, prefix, clock
        self._options, self._progress = options, progress
        self._metadata = MetadataReplay(source, progress)
        self._listing = Listing(store, prefix, progress)
        self._suspects = _Suspects()
        self._findings: list[Finding] = []
        self._young = 0

    async def run(self) -> RemoteFsckReport:
        """Compare. Raises ObjectStoreErrors, and what the source raises, if the comparison cannot be completed."""
        before = await asyncio.to_thread(self._source.state)
        await asyncio.to_thread(self._metadata.catch_up)
        await self._pass()
        await asyncio.to_thread(self._metadata.catch_up)
        after = await asyncio.to_thread(self._source.state)
        judge = PartitionJudge(before, after, prefix=self._prefix, stuck_ms=self._options.stuck_ms, clock=self._clock)
        judged = judge.judge(self._metadata)
        self._findings += judged.findings
        for where, problem in self._metadata.problems.items():
            self._findings.append(Finding(RemoteFindingKind.DAMAGED, where, 0, 0, f"cannot be read: {problem}"))
        await for_each(self._suspects.broken, lambda broken: self._judge_broken(broken, after))
        await self._judge_without_metadata(after, judged)
        self._judge_unknown()
        return RemoteFsckReport(
            objects=self._listing.objects,
            object_bytes=self._listing.bytes,
            segments=self._metadata.segment_count(),
            young_objects=self._young,
            foreign_objects=self._listing.foreign,
            unbounded_partitions=judged.unbounded,
            findings=tuple(sorted(self._findings)),
        )

    # The pass over the listing

    async def _pass(self) -> None:
        waiting = {partition_directory(partition): partition for partition in self._metadata.partitions()}
        seen: set[UUID] = set()
        directory = ""
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                claimed: list[tuple[RemoteLogSegmentMetadata, SegmentObjects]] = []
                for segment in page:
                    if segment.directory != directory:
                        self._miss(waiting.pop(directory, None), seen)
                        directory, seen = segment.directory, set()
                    metadata = self._claim(waiting.get(directory), segment)
                    if metadata is not None:
                        seen.add(segment.segment_id)
                        claimed.append((metadata, segment))
                await for_each(claimed, self._look, at_once=_DEEP_AT_ONCE)
        self._miss(waiting.pop(directory, None), seen)
        for partition in waiting.values():
            self._miss(partition, set())

    async def _pages(self) -> AsyncGenerator[Sequence[SegmentObjects], None]:
        page: list[SegmentObjects] = []
        async with aclosing(self._listing.segments()) as segments:
            async for segment in segments:
                page.append(segment)
                if len(page) == _PAGE:
                    yield page
                    page = []
        yield page

    def _claim(self, partition: TopicIdPartition | None, segment: SegmentObjects) -> RemoteLogSegmentMetadata | None:
        """The metadata of the segment that these objects belong to."""
        if partition is None:
            self._suspects.unknown.setdefault(segment.directory, _Unknown()).add(segment)
            return None
        metadata = self._find(partition, segment)
        if metadata is None:
            self._suspects.without_metadata.append(_WithoutMetadata(partition, segment))
        return metadata

    def _find(self, partition: TopicIdPartition, segment: SegmentObjects) -> RemoteLogSegmentMetadata | None:
        metadata = self._metadata.cache(partition).find_segment(segment.segment_id)
        return metadata if metadata is not None and segment_name(metadata) == segment.name else None

    async def _look(self, item: tuple[RemoteLogSegmentMetadata, SegmentObjects]) -> None:
        metadata, segment = item
        if metadata.state is not _FINISHED:
            return
        try:
            check_sizes(metadata, segment.sizes)
            if self._options.deep:
                await check_content(self._store, self._prefix + segment.name, metadata)
        except (SegmentIncomplete, SegmentDamaged) as trouble:
            self._suspects.broken.append(_Broken(metadata, trouble))

    def _miss(self, partition: TopicIdPartition | None, seen: set[UUID]) -> None:
        """The listing of a partition is over: segments that were not listed are missing."""
        if partition is None:
            return
        for metadata in self._metadata.cache(partition).iter_segments():
            if metadata.state is _FINISHED and metadata.segment_id.id not in seen:
                try:
                    check_sizes(metadata, {})
                except SegmentIncomplete as trouble:
                    self._suspects.broken.append(_Broken(metadata, trouble))

    # The second look

    async def _judge_broken(self, broken: _Broken, after: ClusterState) -> None:
        metadata, trouble = broken
        now = self._metadata.cache(metadata.partition).find_segment(metadata.segment_id.id)
        if now is None or now.state is not _FINISHED or not after.has(metadata.partition):
            return  # it is being deleted
        kind, key = RemoteFindingKind.DAMAGED, self._prefix + segment_name(metadata)
        if isinstance(trouble, SegmentIncomplete):
            if await self._are_there(key, trouble.kinds):
                return
            kind = RemoteFindingKind.MISSING
        detail = f"offsets {metadata.start_offset} to {metadata.end_offset}: {trouble}"
        age_ms = self._age(metadata.event_timestamp_ms)
        self._findings.append(Finding(kind, key, metadata.segment_size_in_bytes, age_ms, detail))

    async def _are_there(self, key: str, kinds: Iterable[str]) -> bool:
        try:
            for kind in kinds:
                await self._store.get_range(f"{key}.{kind}", 0, 1)
        except ObjectNotFound:
            return False
        return True

    async def _judge_without_metadata(self, after: ClusterState, judged: PartitionsJudged) -> None:
        orphans: list[tuple[Finding, SegmentObjects]] = []

        async def look_again(suspect: _WithoutMetadata) -> None:
            partition, segment = suspect
            if self._find(partition, segment) is not None:
                return
            age_ms = self._age(segment.modified_ms)
            if age_ms < self._options.grace_ms:
                self._young += len(segment.sizes)
                return
            key = self._prefix + segment.name
            if not await self._are_there(key, segment.sizes):
                return  # it is being deleted
            kept = self._why_kept(partition, after, judged)
            detail = f"no remote log metadata refers to its {', '.join(sorted(segment.sizes))}{kept}"
            finding = Finding(RemoteFindingKind.ORPHAN, key, segment.size, age_ms, detail)
            if self._options.repair and not kept:
                orphans.append((finding, segment))
            else:
                self._findings.append(finding)

        await for_each(self._suspects.without_metadata, look_again)
        await self._delete(orphans)

    def _why_kept(self, partition: TopicIdPartition, after: ClusterState, judged: PartitionsJudged) -> str:
        """Why an orphan of this partition must not be deleted: its metadata may be lost. Empty if it may be deleted."""
        if self._metadata.problems:
            return f"{_KEPT} some remote log metadata cannot be read, and may have referred to it"
        if not after.has(partition):
            return ""
        if partition.topic_partition not in after.bounds:
            return f"{_KEPT} the log of {partition.topic_partition} is not available, and may need it"
        if partition.topic_partition in judged.holed:
            return f"{_KEPT} {partition.topic_partition} may miss offsets and need it"
        return ""

    async def _delete(self, orphans: Sequence[tuple[Finding, SegmentObjects]]) -> None:
        for start in range(0, len(orphans), _PAGE // 10):
            page = orphans[start : start + _PAGE // 10]
            await self._store.delete([f"{finding.key}.{kind}" for finding, segment in page for kind in segment.sizes])
            self._findings += [finding._replace(detail="deleted", is_repaired=True) for finding, _ in page]
            self._progress("orphans deleted", start + len(page))

    def _judge_unknown(self) -> None:
        known = {partition_directory(partition) for partition in self._metadata.partitions()}
        for directory, unknown in self._suspects.unknown.items():
            age_ms = self._age(unknown.modified_ms)
            if directory in known:
                continue  # its metadata was written meanwhile
            if age_ms < self._options.grace_ms:
                self._young += unknown.objects
                continue
            detail = f"{unknown.objects} objects of a partition without remote log metadata"
            self._findings.append(
                Finding(RemoteFindingKind.UNKNOWN, self._prefix + directory, unknown.bytes, age_ms, detail)
            )

    def _age(self, timestamp_ms: int) -> int:
        return self._clock.now_ms() - timestamp_ms
