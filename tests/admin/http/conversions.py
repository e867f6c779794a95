"""The tiering API of a broker that says what the test wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from strandline.conversion_api.values import (
    AbortSegment,
    BeginSegment,
    BegunSegment,
    ClaimedFiles,
    ClaimFiles,
    ClusterDescription,
    CommitSegment,
    CommittedSegment,
    ListMerges,
    ListTriggers,
    MergeRange,
    MergeRanges,
    PartitionTieringStatus,
    PipelineSettings,
    PlanRead,
    ReadPlan,
    RecordedSplits,
    RecordSplits,
    ReleaseFiles,
    RenewClaims,
    RenewedClaims,
    SegmentDescription,
    SplitFile,
    TieringStatus,
    Triggers,
)
from strandline.errors import InvalidRequest, StrandlineError, UnknownTopicOrPartition
from strandline.hybrid.conversion.led_tiers import DisklessTiers
from strandline.model import TopicIdPartition, TopicPartition

PARTITION = TopicIdPartition(UUID(int=7), TopicPartition("orders", 0))
SPLIT = SplitFile(
    object_key="split/1",
    base_offset=0,
    last_offset=9,
    size_bytes=100,
    batch_count=2,
    max_timestamp=5,
    leader_epochs=((0, 0),),
)
SEGMENT = SegmentDescription(
    segment_id=UUID(int=9),
    start_offset=0,
    end_offset=9,
    max_timestamp_ms=5,
    broker_id=1,
    event_timestamp_ms=6,
    segment_size_in_bytes=100,
    leader_epochs=((0, 0),),
    custom_metadata=b"\x01",
)
CLUSTER = ClusterDescription(
    api_version=2,
    broker_id=1,
    cluster_id="c",
    store_settings={"strandline.objects.url": "file:///objects"},
    pipeline=PipelineSettings(
        splitter_interval_ms=1,
        splitter_max_files_per_run=2,
        splitter_claim_duration_ms=3,
        merger_interval_ms=4,
        merger_initial_delay_ms=5,
        min_segment_bytes=6,
        max_segment_bytes=7,
        max_batches_per_run=8,
        merger_max_wait_ms=9,
        task_buffer_bytes=10,
        alert_after_failures=11,
    ),
)
ORDERS = TieringStatus(
    topic_name="orders",
    tiered_high_offset=599,
    diskless_start_offset=600,
    high_watermark=1000,
    pending_batches_count=12,
    pending_split_files_count=3,
    eligible_bytes=4_000_000,
    is_paused=False,
    lag_bytes=9_000_000,
    pending_merge_batches_count=5,
    partitions=(
        PartitionTieringStatus(
            partition=0,
            tiered_high_offset=599,
            diskless_start_offset=600,
            high_watermark=1000,
            pending_batches_count=12,
            pending_split_files_count=3,
            eligible_bytes=4_000_000,
            lag_bytes=9_000_000,
            pending_merge_batches_count=5,
        ),
    ),
)

# For each method, a request and its answer.
CALLS: Mapping[str, tuple[Any, Any]] = {
    "describe": (None, CLUSTER),
    "claim-files": (
        ClaimFiles(claimant="me", max_files=1, max_rows=2, claim_ms=3),
        ClaimedFiles(files=(), next_file_id=0),
    ),
    "record-splits": (
        RecordSplits(claimant="me", object_keys=("wal/1",), splits=()),
        RecordedSplits(refused={"split/1": "It is not claimed."}, files_done=("wal/1",)),
    ),
    "release-files": (ReleaseFiles(claimant="me", object_keys=("wal/1",)), None),
    "renew-claims": (RenewClaims(claimant="me", claim_ms=5), RenewedClaims(files=1, segments=2)),
    "list-triggers": (ListTriggers(), Triggers(triggered_at_ms={"orders": 1000})),
    "list-merges": (
        ListMerges(),
        MergeRanges(
            ranges=(MergeRange(partition=PARTITION, base_offset=0, last_offset=9, size_bytes=100, splits=(SPLIT,)),)
        ),
    ),
    "begin-segment": (
        BeginSegment(claimant="me", partition=PARTITION, base_offset=0, last_offset=9, claim_ms=5),
        BegunSegment(
            partition=PARTITION,
            leader_epoch=3,
            segment=SEGMENT,
            splits=(SPLIT,),
            previous=None,
            index_interval_bytes=4096,
            producer_id_expiration_ms=1,
        ),
    ),
    "commit-segment": (
        CommitSegment(claimant="me", partition=PARTITION, segment_id=UUID(int=9), end_offset=9, custom_metadata=b"x"),
        CommittedSegment(diskless_start_offset=10),
    ),
    "abort-segment": (AbortSegment(claimant="me", partition=PARTITION, segment_id=UUID(int=9)), None),
    "plan-read": (
        PlanRead(topic="orders", partition=0),
        ReadPlan(
            partition=PARTITION,
            log_start_offset=0,
            high_watermark=12,
            diskless_start_offset=10,
            segments=(SEGMENT,),
            local_ranges=((0, 4),),
            rows=(),
            end_offset=12,
        ),
    ),
}


class Conversions:
    """`TieringSource` of a broker with one diskless topic, orders, and a classic one, tides."""

    def __init__(self) -> None:
        self.topic = ORDERS
        self.error: StrandlineError | None = None
        self.asked: list[object] = []
        self.led_tiers: dict[str, tuple[DisklessTiers, ...]] = {}

    def _told(self, method: str, request: object = None) -> Any:
        if self.error is not None:
            raise self.error
        self.asked.append(request)
        return CALLS[method][1]

    async def describe(self) -> ClusterDescription:
        return self._told("describe")  # type: ignore[no-any-return]

    async def claim_files(self, request: ClaimFiles) -> ClaimedFiles:
        return self._told("claim-files", request)  # type: ignore[no-any-return]

    async def record_splits(self, request: RecordSplits) -> RecordedSplits:
        return self._told("record-splits", request)  # type: ignore[no-any-return]

    async def release_files(self, request: ReleaseFiles) -> None:
        self._told("release-files", request)

    async def renew_claims(self, request: RenewClaims) -> RenewedClaims:
        return self._told("renew-claims", request)  # type: ignore[no-any-return]

    async def list_triggers(self, request: ListTriggers) -> Triggers:
        return self._told("list-triggers", request)  # type: ignore[no-any-return]

    async def list_merges(self, request: ListMerges) -> MergeRanges:
        return self._told("list-merges", request)  # type: ignore[no-any-return]

    async def begin_segment(self, request: BeginSegment) -> BegunSegment:
        return self._told("begin-segment", request)  # type: ignore[no-any-return]

    async def commit_segment(self, request: CommitSegment) -> CommittedSegment:
        return self._told("commit-segment", request)  # type: ignore[no-any-return]

    async def abort_segment(self, request: AbortSegment) -> None:
        self._told("abort-segment", request)

    async def plan_read(self, request: PlanRead) -> ReadPlan:
        return self._told("plan-read", request)  # type: ignore[no-any-return]

    async def statuses(self, topics: tuple[str, ...]) -> tuple[TieringStatus, ...]:
        if self.error is not None:
            raise self.error
        for topic in topics:
            if topic == "tides":
                raise InvalidRequest("Topic tides is not diskless.")
            if topic == "new":
                return ()
            if topic != "orders":
                raise UnknownTopicOrPartition(f"There is no topic {topic}.")
        return (self.topic,)

    async def tiers(self, topic: str) -> tuple[DisklessTiers, ...]:
        return self.led_tiers.get(topic, ())

    async def pause(self, topic: str, *, is_paused: bool) -> TieringStatus:
        await self.statuses((topic,))
        self.asked.append((topic, is_paused))
        self.topic = replace(self.topic, is_paused=is_paused)
        return self.topic

    async def trigger(self, topic: str) -> TieringStatus:
        await self.statuses((topic,))
        self.asked.append(topic)
        self.topic = replace(self.topic, triggered_at_ms=1000)
        return self.topic
