"""Keeps the converted part of led partitions in order: unfinished uploads, and segments that have expired.

By level: what is to be done follows from the rows of the control plane and from remote log metadata, at every look, on
the broker that leads the partition. A broker that has just become the leader goes on where another one stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from strandline.clock import Clock
from strandline.config import TopicConfig
from strandline.controlplane import (
    DatabaseTime,
    DisklessLog,
    DisklessLogs,
    MigrationState,
    PrefixProgress,
    PrefixReports,
    RecordDeletion,
)
from strandline.controlplane.conversion import ConversionKeeping, GivenUpSegments, SegmentUpload, UploadState
from strandline.crash import crash_point
from strandline.errors import StrandlineError
from strandline.hybrid.conversion.figures import TieringFigures
from strandline.hybrid.conversion.lanes import Lane
from strandline.hybrid.conversion.late import LateDeletions
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.conversion.needed_metadata import ConvertedMetadata
from strandline.hybrid.conversion.uploads import LeaderUploads
from strandline.hybrid.diskless.remote_prefix import RemotePrefix
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.remote.topics import TieredTopics, is_open_tier
from strandline.hybrid.suffix_sizes import SuffixSizes
from strandline.model import INT64_MAX, LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.remote.ports import RemoteStorageError
from strandline.sql import SqlError
from strandline.tasks import Setbacks, next_turn

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Partitions that are looked at in one turn of the event loop."""
_UPLOADS_AT_ONCE: Final = 16
_DELETIONS_AT_ONCE: Final = 16
"""Partitions. One whose storage hangs takes a place until the deadline of the storage."""
_CONVERSION: Final = "conversion"
_DELETION: Final = "deletion of converted segments"
LOOK_SECONDS: Final = 5.0
"""How often all led partitions with converted segments are looked at."""
_SEEN_ANYWAY_MS: Final = 600_000
"""An unchanged partition is looked at thoroughly after this long: metadata may have changed unnoticed."""


class _Basis(NamedTuple):
    """What the last look at a partition was based on. While it is the same, only time changes what is to be done."""

    epoch: LeaderEpoch
    log_start: Offset
    read_boundary: Offset
    segments: int
    under_way: Set[UUID]
    config: TopicConfig
    prefix: RemotePrefix | None
    """What is below B0, if this broker should have the log of that and does not."""


class _Due(NamedTuple):
    """When an unchanged partition is to be looked at again."""

    at_ms: TimestampMs
    byte_size: int | None
    """Or when its rows have so many bytes."""


class _Uploads(NamedTuple):
    """Uploads of one partition that are to be finished, or to be given up if the pipeline does not go on with them."""

    uploads: tuple[SegmentUpload, ...]
    now_ms: TimestampMs


class _Deletions(NamedTuple):
    """What a look has found to be deleted of one partition, or to be looked at thoroughly."""

    log: DisklessLog
    basis: _Basis
    now_ms: TimestampMs
    given_up: tuple[SegmentUpload, ...]


class _Lanes(NamedTuple):
    """The work that looks have found, done apart: a store that hangs holds up neither looks nor uploads."""

    uploads: Lane[TopicIdPartition, _Uploads]
    """These need only rows and metadata."""
    deletions: Lane[TopicIdPartition, _Deletions]
    late: LateDeletions


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperPorts:
    """What the keeper uses of the control plane."""

    logs: DisklessLogs
    conversion: ConversionKeeping
    given_up: GivenUpSegments
    trimming: RecordDeletion
    prefixes: PrefixReports
    time: DatabaseTime


class ConvertedKeeper:
    """See the module."""

    def __init__(
        self,
        plane: KeeperPorts,
        diskless: DisklessTopics,
        tiered: TieredTopics,
        led: LedPartitions,
        metadata: ConvertedMetadata,
        uploads: LeaderUploads,
        sizes: SuffixSizes,
        *,
        topic_config: Callable[[str], TopicConfig],
        figures: TieringFigures,
        clock: Clock,
    ) -> None:
        self._plane, self._diskless, self._tiered, self._led = plane, diskless, tiered, led
        self._metadata, self._uploads, self._sizes = metadata, uploads, sizes
        self._topic_config = topic_config
        self._figures, self._clock = figures, clock
        self._settled: dict[TopicIdPartition, tuple[_Basis, _Due]] = {}
        self._followed: frozenset[TopicIdPartition] = frozenset()
        self._ended: set[TopicIdPartition] = set()
        """Those without segments, of partitions whose log is lost."""
        self._wake = asyncio.Event()
        self._setbacks = Setbacks("following converted partitions", logger)
        self._troubles: dict[tuple[TopicIdPartition, str], Setbacks] = {}

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    async def run(self) -> None:
        """Look again and again. Endless."""
        async with asyncio.TaskGroup() as group:
            lanes = _Lanes(
                uploads=Lane(group, "converted-uploads", self._carry_on, at_once=_UPLOADS_AT_ONCE),
                deletions=Lane(group, "converted-deletions", self._delete, at_once=_DELETIONS_AT_ONCE),
                late=LateDeletions(self._plane.given_up, self._tiered, group),
            )
            while True:
                await self._clock.wait_set(self._wake, within=LOOK_SECONDS)
                self._wake.clear()
                try:
                    await self._look(lanes)
                except SqlError as error:
                    self._setbacks.met(error)
                else:
                    self._setbacks.over()

    async def _look(self, lanes: _Lanes) -> None:
        """Find what is to be done for every led partition, and have it done. Raises SqlError."""
        tier = self._tiered.storage
        if not is_open_tier(tier):
            return
        await lanes.late.look()
        logs = {log.partition: log for log in await self._plane.conversion.converted_logs()}
        if prefixes := self._prefixes():
            lost = await self._plane.logs.logs(prefixes.keys() - logs.keys() - self._ended)
            self._ended = {key for key in prefixes if key in self._ended or _is_over(lost.get(key))}
            logs.update(lost)
        led = {key: log for key, log in logs.items() if self._led.epoch_of(key) is not None}
        self._follow(tier, led, lanes)
        if not led:
            return
        now_ms = await self._plane.time.now_ms()
        uploads = defaultdict[TopicIdPartition, list[SegmentUpload]](list)
        for upload in await self._plane.conversion.segment_uploads(led):
            uploads[upload.partition].append(upload)
        for at, (key, log) in enumerate(led.items()):
            if at % _AT_ONCE == 0:
                await next_turn()
            self._look_at(tier, log, prefixes.get(key), uploads.get(key, ()), now_ms, lanes)

    def _prefixes(self) -> dict[TopicIdPartition, RemotePrefix]:
        """Of partitions whose log is lost: no other component keeps their remote segments in order."""
        return {one.id: one.prefix for one in self._diskless.registry.without_log.values()}

    def _look_at(
        self,
        tier: RemoteTier,
        log: DisklessLog,
        prefix: RemotePrefix | None,
        uploads: Sequence[SegmentUpload],
        now_ms: TimestampMs,
        lanes: _Lanes,
    ) -> None:
        key, epoch = log.partition, self._led.epoch_of(log.partition)
        if epoch is None:
            return
        given_up = tuple(upload for upload in uploads if upload.state is UploadState.ABORTING)
        others = tuple(upload for upload in uploads if upload.state is not UploadState.ABORTING)
        if others:
            lanes.uploads.want(key, _Uploads(others, now_ms))
        if not tier.metadata.is_ready(key):
            return
        self._diskless.engine.learn(log)
        self._sizes.set_rows(key, log.byte_size, read_boundary=log.diskless_start_offset)
        basis = _Basis(
            epoch,
            log.log_start_offset,
            log.diskless_start_offset,
            tier.metadata.remote_log_summary(key).segments,
            frozenset(upload.segment_id for upload in uploads),
            self._topic_config(key.topic),
            prefix,
        )
        if given_up or not self._is_settled(key, basis, log.byte_size, now_ms):
            lanes.deletions.want(key, _Deletions(log, basis, now_ms, given_up))

    def _follow(self, tier: RemoteTier, led: Collection[TopicIdPartition], lanes: _Lanes) -> None:
        """The metadata of their segments is needed as long as this broker leads them."""
        for key in led:
            self._metadata.subscribe(tier, key)
        self._metadata.unsubscribe_others(tier, led)
        for key in self._followed.difference(led):
            lanes.uploads.drop(key)
            lanes.deletions.drop(key)
            self._settled.pop(key, None)
            self._troubles.pop((key, _CONVERSION), None)
            self._troubles.pop((key, _DELETION), None)
            self._sizes.forget_converted(key)
        self._followed = frozenset(led)

    def _trouble(self, key: TopicIdPartition, what: str) -> Setbacks:
        known = self._troubles.get((key, what)) or Setbacks(f"{what} of {key.topic_partition}", logger)
        if key in self._followed:  # otherwise it would never be forgotten
            self._troubles[key, what] = known
        return known

    # Uploads

    async def _carry_on(self, found: _Uploads) -> None:
        """In the order of their offsets: a segment can be committed when those before it are."""
        for upload in found.uploads:
            epoch = self._led.epoch_of(upload.partition)
            if epoch is None:
                continue
            trouble = self._trouble(upload.partition, _CONVERSION)
            try:
                await self._uploads.carry_on(upload, epoch, now_ms=found.now_ms)
            except (StrandlineError, SqlError) as error:
                trouble.met(error)
            else:
                trouble.over()

    # Retention

    async def _delete(self, found: _Deletions) -> None:
        tier, key, epoch = self._tiered.storage, found.log.partition, found.basis.epoch
        if not is_open_tier(tier) or self._led.epoch_of(key) != epoch:
            return
        trouble = self._trouble(key, _DELETION)
        try:
            for upload in found.given_up:
                await self._uploads.carry_on(upload, epoch, now_ms=found.now_ms)
            await self._expire(tier, found)
        except (StrandlineError, RemoteStorageError, SqlError, ValueError) as error:
            trouble.met(error)
        else:
            trouble.over()

    async def _expire(self, tier: RemoteTier, found: _Deletions) -> None:
        # Loaded here: it needs the manager of tiered storage, which brokers without it do not load.
        from strandline.hybrid.conversion.expiry import ConvertedRetention, always, plan_expiry
        from strandline.remote.turns import gathered, in_turns

        log, basis, now_ms = found.log, found.basis, found.now_ms
        key, epoch, config = log.partition, basis.epoch, basis.config
        if self._is_settled(key, basis, log.byte_size, now_ms):
            return
        is_kept = not config.is_deleted_by_retention
        retention = ConvertedRetention(
            ms=-1 if is_kept else config.retention_ms, bytes=-1 if is_kept else config.retention_bytes
        )
        first = log.diskless_log_start_offset if basis.prefix is None else 0
        segments = await gathered(self._clock, tier.manager.pipeline.from_offset(key, first))
        steps = plan_expiry(
            replace(log, diskless_log_start_offset=first),
            segments,
            retention,
            lookup=partial(tier.metadata.remote_log_segment_metadata, key),
            now_ms=now_ms,
            under_way=basis.under_way,
            is_of_log=always if basis.prefix is None else basis.prefix.is_of_log,
        )
        plan = await in_turns(self._clock, steps)
        if self._led.epoch_of(key) != epoch or self._topic_config(log.partition.topic) != config:
            return  # making the plan took a while
        self._sizes.set_converted(key, plan.converted_bytes, read_boundary=log.diskless_start_offset)
        if plan.log_start > log.log_start_offset:
            await self._plane.trimming.delete_records({key: plan.log_start})
            crash_point("tiering.expire.after_log_start")
            self._diskless.engine.log_start_moved(key, plan.log_start)
        goes_on = partial(self._leads, key, epoch)
        if not await tier.manager.pipeline.delete(plan.deletions, goes_on=goes_on):
            return
        self._figures.segments_expired += len(plan.deletions)
        if not plan.remaining and plan.log_start >= log.diskless_start_offset and _is_hybrid(log):
            await self._plane.conversion.conversion_ended(key, leader_epoch=epoch)
        elif not plan.remaining and basis.prefix is not None and plan.log_start >= log.diskless_log_start_offset:
            await self._plane.prefixes.record_prefix([_ended(log, epoch)])
        due_ms = min(now_ms + _SEEN_ANYWAY_MS, INT64_MAX if plan.next_due_ms is None else plan.next_due_ms)
        if key in self._followed:
            self._settled[key] = (basis, _Due(due_ms, plan.next_due_byte_size))

    def _leads(self, key: TopicIdPartition, epoch: LeaderEpoch) -> bool:
        return self._led.epoch_of(key) == epoch

    def _is_settled(self, key: TopicIdPartition, basis: _Basis, byte_size: int, now_ms: TimestampMs) -> bool:
        """Whether what the last look has found still holds: rows that are written change nothing, up to a size."""
        settled = self._settled.get(key)
        if settled is None or settled[0] != basis:
            return False
        due = settled[1]
        return now_ms < due.at_ms and (due.byte_size is None or byte_size < due.byte_size)


def _is_over(log: DisklessLog | None) -> bool:
    return log is not None and log.migration_state is MigrationState.DISKLESS_ONLY


def _is_hybrid(log: DisklessLog) -> bool:
    return log.migration_state is MigrationState.HYBRID


def _ended(log: DisklessLog, epoch: LeaderEpoch) -> PrefixProgress:
    """Nothing is left below B0 of a log that no broker has: this ends MIGRATING."""
    return PrefixProgress(
        partition=log.partition,
        leader_epoch=epoch,
        log_start_offset=log.diskless_log_start_offset,
        tiered_log_start_offset=log.tiered_log_start_offset,
        tiered_high_offset=log.tiered_high_offset,
        state=MigrationState.DISKLESS_ONLY,
    )
