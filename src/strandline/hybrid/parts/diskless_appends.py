"""Appends to a diskless log: every broker takes them, and the control plane gives the order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.clock import Clock
from strandline.diskless.values import DisklessAppend, DisklessAppended, marker_to_commit
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.hybrid.diskless.producers import check_epoch
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.model import NO_OFFSET, NO_TIMESTAMP, ProducerAndEpoch, TimestampMs
from strandline.records import TimestampType, validate_internal, validate_produced
from strandline.replication import ACKS_ALL, Append, Appended, Completion

if TYPE_CHECKING:  # the part has its appends
    from strandline.hybrid.parts.diskless import DisklessPart


class DisklessAppends:
    """See `PartitionAppends`."""

    __slots__ = ("_clock", "_part", "_tier")

    def __init__(self, part: DisklessPart, tier: DisklessTier, clock: Clock) -> None:
        self._part, self._tier, self._clock = part, tier, clock

    @property
    def local_replica(self) -> None:
        """None: every append waits for its commit."""
        return None

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        """The control plane knows, this broker does not: the coordinator is asked about every batch."""
        return False

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        """The control plane refuses it when the batch is committed."""

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        """The control plane has taken over the producers of an older part."""
        await check_epoch(self._tier, self._part.id, producer)

    def append(self, append: Append) -> Appended:
        """Check a batch, copy it, and give it its place in the order of this broker.

        Its offsets are filled into the answer's `info` before `done` is called: whatever its `acks` say, that is when
        it is committed. Raises the errors of an invalid batch.
        """
        part = self._part
        if part.older is not None:
            part.older.admit(append.records)
        part.check_leader()
        limits, done = part.limits, append.done
        timestamp_type, marker = limits.timestamp_type, None
        if append.origin is AppendOrigin.CLIENT:
            buffer, header = validate_produced(append.records, limits=limits.batch, now_ms=self._clock.now_ms())
        else:
            buffer, header = validate_internal(append.records, limits=limits.batch, now_ms=self._clock.now_ms())
            if header.is_control:  # it keeps the time of its coordinator, as in a classic log
                timestamp_type = TimestampType.CREATE_TIME
                marker = marker_to_commit(buffer, append.transaction_version, append.transaction_start_ms)
        info = LogAppendInfo(
            first_offset=NO_OFFSET,
            last_offset=NO_OFFSET,
            log_append_time_ms=NO_TIMESTAMP,
            log_start_offset=NO_OFFSET,
            is_duplicate=False,
            size=len(buffer),
            max_timestamp=header.max_timestamp,
        )

        def committed(result: DisklessAppended | StrandlineError) -> None:
            if isinstance(result, StrandlineError):
                done(result)
                return
            info.first_offset, info.log_append_time_ms, info.log_start_offset = result
            info.last_offset = info.first_offset + header.last_offset_delta
            done(None)

        self._tier.writer.append(
            DisklessAppend(
                part.id,
                self._tier.memory.copy(buffer),
                header,
                timestamp_type,
                part.leader_epoch,
                marker,
                append.verification,
            ),
            committed,
        )
        return Appended(info, is_done=False, is_written=False, is_copied=True)

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        """See `PartitionAppends`. No transaction is open across a boundary: what a marker ends is in this part."""
        completion = Completion()
        appended = self.append(
            Append(
                records,
                acks=ACKS_ALL,
                origin=AppendOrigin.COORDINATOR,
                done=completion.done,
                transaction_version=transaction_version,
                transaction_start_ms=transaction_start_ms,
            )
        )
        if not await completion.wait(timeout_ms):
            raise RequestTimedOut(f"A batch of {self._part.topic_partition} was not committed in {timeout_ms} ms.")
        return appended.info
