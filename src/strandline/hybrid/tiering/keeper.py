"""Keeps the converted part of led partitions in order: uploads that nobody finishes, and segments that have expired.

By level: what is to be done follows from the rows of the control plane and from remote log metadata, at every look, on
whichever broker leads a partition. A broker that has just become the leader goes on where another one stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from strandline.clock import Clock
from strandline.config.topic import TopicConfig
from strandline.controlplane.ports import ControlPlane
from strandline.controlplane.tiering_values import SegmentUpload
from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.crash import crash_point
from strandline.errors import StrandlineError
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.suffix_sizes import SuffixSizes
from strandline.hybrid.tiered.topics import TieredTopics
from strandline.hybrid.tiering.figures import TieringFigures
from strandline.hybrid.tiering.led import LedPartitions
from strandline.hybrid.tiering.uploads import LeaderUploads
from strandline.model import INT64_MAX, LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.remote.ports import RemoteStorageError
from strandline.sql import SqlError
from strandline.tasks import Setbacks, next_turn

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.tiered.tier import RemoteTier

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Partitions that are looked at in one turn of the event loop."""
_LATE_AT_ONCE: Final = 20
"""Segments that were given up whose bytes are deleted in one look."""
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


class _Due(NamedTuple):
    """When an unchanged partition is to be looked at again."""

    at_ms: TimestampMs
    byte_size: int | None
    """Or when its rows have so many bytes."""


class ConvertedKeeper:
    """See the module."""

    def __init__(
        self,
        plane: ControlPlane,
        diskless: DisklessTopics,
        tiered: TieredTopics,
        led: LedPartitions,
        uploads: LeaderUploads,
        sizes: SuffixSizes,
        *,
        topic_config: Callable[[str], TopicConfig],
        figures: TieringFigures,
        clock: Clock,
    ) -> None:
        self._plane, self._diskless, self._tiered, self._led = plane, diskless, tiered, led
        self._uploads, self._sizes, self._topic_config = uploads, sizes, topic_config
        self._figures, self._clock = figures, clock
        self._settled: dict[TopicIdPartition, tuple[_Basis, _Due]] = {}
        self._followed: set[TopicIdPartition] = set()
        self._wake = asyncio.Event()
        self._setbacks = Setbacks("following converted partitions", logger)
        self._late = Setbacks("deletion of segments that were given up", logger)
        self._troubles: dict[TopicIdPartition, Setbacks] = {}

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    async def run(self) -> None:
        """Look again and again. Endless."""
        while True:
            await self._clock.wait_set(self._wake, within=LOOK_SECONDS)
            self._wake.clear()
            try:
                await self.look()
            except SqlError as error:
                self._setbacks.met(error)
            else:
                self._setbacks.over()

    async def look(self) -> None:
        """Look at every led partition once. Raises SqlError; trouble with one partition does not hold up others."""
        if self._tiered.tier is None:
            return
        await self._delete_late(self._tiered.tier)
        logs = {log.partition: log for log in await self._plane.converted_logs()}
        led = {key: log for key, log in logs.items() if self._led.epoch_of(key) is not None}
        self._follow(self._tiered.tier, led)
        if not led:
            return
        now_ms = await self._plane.now_ms()
        uploads = await self._plane.segment_uploads(led)
        await self._carry_on(uploads, now_ms)
        under_way = defaultdict[TopicIdPartition, set[UUID]](set)
        for upload in uploads:
            under_way[upload.partition].add(upload.segment_id)
        for at, (key, log) in enumerate(led.items()):
            if at % _AT_ONCE == 0:
                await next_turn()
            tier, epoch = self._tiered.tier, self._led.epoch_of(key)
            if tier is None or epoch is None or not tier.metadata.is_ready(key):
                continue
            self._diskless.learn(key, log)
            self._sizes.set_rows(key, log.byte_size, read_boundary=log.diskless_start_offset)
            try:
                await self._expire(tier, log, epoch, now_ms, under_way.get(key, frozenset()))
            except (StrandlineError, RemoteStorageError) as error:
                self._trouble(key).met(error)

    def _follow(self, tier: RemoteTier, led: Collection[TopicIdPartition]) -> None:
        """The metadata of their segments is needed as long as this broker leads them."""
        for key in led:
            self._uploads.subscribe(tier, key)
        for key in self._followed.difference(led):
            self._uploads.unsubscribe(tier, key)
            self._settled.pop(key, None)
            self._troubles.pop(key, None)
            self._sizes.forget_converted(key)
        self._followed = set(led)

    def _trouble(self, key: TopicIdPartition) -> Setbacks:
        return self._troubles.setdefault(key, Setbacks(f"conversion of {key.topic_partition}", logger))

    # Uploads

    async def _carry_on(self, uploads: Sequence[SegmentUpload], now_ms: TimestampMs) -> None:
        """In the order of their offsets: a segment can be committed when those before it are."""
        for upload in uploads:
            epoch = self._led.epoch_of(upload.partition)
            if epoch is None:
                continue
            try:
                await self._uploads.carry_on(upload, epoch, now_ms=now_ms)
            except StrandlineError as error:
                self._trouble(upload.partition).met(error)
            else:
                self._trouble(upload.partition).over()

    async def _delete_late(self, tier: RemoteTier) -> None:
        """Of segments that were given up, or whose topics are deleted. Any broker may do it, and several at a time."""
        for given_up in await self._plane.given_up_segments(limit=_LATE_AT_ONCE):
            partition, segment_id, base, last = given_up
            try:
                await tier.manager.pipeline.delete_late(partition, segment_id, base, last)
            except RemoteStorageError as error:
                self._late.met(error)
                return
            crash_point("tiering.late.after_delete")
            await self._plane.given_up_deleted(segment_id)
        self._late.over()

    # Retention

    async def _expire(
        self, tier: RemoteTier, log: DisklessLog, epoch: LeaderEpoch, now_ms: TimestampMs, under_way: Set[UUID]
    ) -> None:
        # Loaded here: it needs the manager of tiered storage, which brokers without it do not load.
        from strandline.hybrid.tiering.expiry import ConvertedRetention, plan_expiry
        from strandline.remote.turns import gathered, in_turns

        key, config = log.partition, self._topic_config(log.partition.topic)
        count = tier.metadata.remote_log_summary(key).segments
        basis = _Basis(epoch, log.log_start_offset, log.diskless_start_offset, count, under_way, config)
        if self._is_settled(key, basis, log.byte_size, now_ms):
            return
        is_kept = not config.is_deleted_by_retention
        retention = ConvertedRetention(
            ms=-1 if is_kept else config.retention_ms, bytes=-1 if is_kept else config.retention_bytes
        )
        segments = await gathered(self._clock, tier.manager.pipeline.from_offset(key, log.diskless_log_start_offset))
        steps = plan_expiry(
            log,
            segments,
            retention,
            lookup=partial(tier.metadata.remote_log_segment_metadata, key),
            now_ms=now_ms,
            under_way=under_way,
        )
        plan = await in_turns(self._clock, steps)
        if self._led.epoch_of(key) != epoch or self._topic_config(log.partition.topic) != config:
            return  # making the plan took a while
        self._sizes.set_converted(key, plan.converted_bytes, read_boundary=log.diskless_start_offset)
        if plan.log_start > log.log_start_offset:
            await self._plane.delete_records({key: plan.log_start})
            crash_point("tiering.expire.after_log_start")
            if self._diskless.tier is not None:
                self._diskless.tier.reader.log_start_moved(key, plan.log_start)
        try:
            is_done = await tier.manager.pipeline.delete(
                plan.deletions, goes_on=lambda: self._led.epoch_of(key) == epoch
            )
        except (RemoteStorageError, ValueError) as error:
            self._trouble(key).met(error)
            return
        if not is_done:
            return
        self._figures.segments_expired += len(plan.deletions)
        if not plan.remaining and plan.log_start >= log.diskless_start_offset and _is_hybrid(log):
            await self._plane.conversion_ended(key, leader_epoch=epoch)
        due_ms = min(now_ms + _SEEN_ANYWAY_MS, INT64_MAX if plan.next_due_ms is None else plan.next_due_ms)
        self._settled[key] = (basis, _Due(due_ms, plan.next_due_byte_size))

    def _is_settled(self, key: TopicIdPartition, basis: _Basis, byte_size: int, now_ms: TimestampMs) -> bool:
        """Whether what the last look has found still holds: rows that are written change nothing, up to a size."""
        settled = self._settled.get(key)
        if settled is None or settled[0] != basis:
            return False
        due = settled[1]
        return now_ms < due.at_ms and (due.byte_size is None or byte_size < due.byte_size)


def _is_hybrid(log: DisklessLog) -> bool:
    return log.migration_state is MigrationState.HYBRID
