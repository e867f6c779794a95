"""A diskless partition that was classic before, on a broker that does not have its log."""

from __future__ import annotations

from strandline.errors import NotLeaderOrFollower
from strandline.hybrid.diskless.partition import DisklessPartition
from strandline.hybrid.partition import FinalRead, PendingRead
from strandline.model import NO_EPOCH, LeaderEpoch, Offset, TimestampMs
from strandline.reads import LATEST, FetchIsolation, FoundOffset, ReadResult, WholeLog


class DisklessSuffix(DisklessPartition):
    """Takes appends and serves reads from its boundary B0 on, as every broker does.

    Only the broker that has the log knows what is below: it is named as the leader, and clients that ask this one get
    NOT_LEADER_OR_FOLLOWER. Once the log start has reached the boundary, nothing is left below it.
    """

    __slots__ = ()

    def _check_prefix(self) -> None:
        if self.has_prefix:
            raise NotLeaderOrFollower(
                f"{self.topic_partition} is diskless from offset {self.boundary} on; what is below is served by the "
                "broker that has its log, which is its leader."
            )

    def read_now(
        self,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> ReadResult | FinalRead | PendingRead:
        if offset < self.boundary:
            self._check_prefix()
        elif isolation is FetchIsolation.LOG_END:  # the suffix is not replicated
            return ReadResult(None, self.boundary, self.boundary, self.log_start_offset, None)
        return super().read_now(offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=whole)

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        if timestamp != LATEST:
            self._check_prefix()
        return await super().list_offset(
            timestamp, isolation=isolation, current_leader_epoch=current_leader_epoch, timeout_ms=timeout_ms
        )

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[LeaderEpoch, Offset]:
        self._check_prefix()
        return await super().end_offset_for_epoch(epoch, current_leader_epoch=current_leader_epoch)

    async def delete_records(self, before: Offset) -> Offset:
        self._check_prefix()
        return await super().delete_records(before)
