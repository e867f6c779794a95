"""Reads of classic partitions whose records are in remote storage only: by offset, and by time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from strandline.errors import KafkaStorageError, RequestTimedOut, StrandlineError
from strandline.hybrid.diskless_partition import PartitionRead
from strandline.hybrid.tiering import TieredTopics
from strandline.log import FetchIsolation
from strandline.model import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset, TimestampMs
from strandline.replication import Partition
from strandline.replication.offsets import NOTHING, FoundOffset, last_fetchable

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.reader import RemoteLogReader, RemoteRead, RemoteReadResult


class TieredRead(NamedTuple):
    """Read a partition from an offset on that is in remote storage."""

    partition: Partition
    request: RemoteRead


class TieredReads:
    """The reader of remote segments, for those that know only partitions."""

    def __init__(self, topics: TieredTopics) -> None:
        self._topics = topics

    @property
    def max_wait_seconds(self) -> float:
        """How long a Fetch waits for remote records (remote.fetch.max.wait.ms)."""
        tier = self._topics.tier
        return 0.0 if tier is None else tier.reader.limits.fetch_max_wait_ms / 1000

    def _reader(self, partition: Partition) -> RemoteLogReader:
        tier = self._topics.tier
        if tier is None:
            raise KafkaStorageError(
                f"{partition.topic_partition} has records in remote storage, which this broker has not opened: "
                "remote.log.storage.system.enable has to be true."
            )
        return tier.reader

    def read_now(
        self,
        partition: Partition,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
    ) -> PartitionRead | StrandlineError | TieredRead:
        """What is at hand, or what to ask `PartitionRouter.read` for. An error of remote storage is an answer.

        Raises KafkaStorageError if this broker has no remote storage.
        """
        reader = self._reader(partition)
        request = reader.request(
            partition.topic_id, partition.topic_partition, partition.log, offset, max_bytes, isolation
        )
        found = reader.read_now(request, min_one_message=min_one_message)
        if found is None:
            return TieredRead(partition, request)
        return found.error or _read_of(found)

    async def read(
        self, reads: Sequence[TieredRead], max_bytes: int, *, min_one_message: bool, is_wanted: Callable[[], bool]
    ) -> Sequence[PartitionRead | StrandlineError]:
        """Have read what is not at hand, several partitions at the same time. Errors are answers.

        Nothing is counted that is not wanted any more when it is there.
        """
        if not reads:
            return ()
        try:
            reader = self._reader(reads[0].partition)
        except KafkaStorageError as error:
            return [error] * len(reads)
        requests = [read.request for read in reads]
        found = await reader.read(requests, max_bytes=max_bytes, min_one_message=min_one_message, is_wanted=is_wanted)
        return [result.error or _read_of(result) for result in found]

    async def offset_by_timestamp(
        self,
        partition: Partition,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset | None:
        """The first record at or after a time that is in remote storage only; None if the local log has to say.

        Raises RequestTimedOut if it takes longer than the client or the setting allows; what was read is kept.
        """
        partition.check_leader(current_leader_epoch)
        log = partition.log
        if log.local_log_start_offset <= log.log_start_offset:
            return None
        reader = self._reader(partition)
        request = reader.request(partition.topic_id, partition.topic_partition, log, NO_OFFSET, 0, isolation)
        limit_ms = timeout_ms if timeout_ms > 0 else reader.limits.list_offsets_timeout_ms
        found, searched = None, NO_OFFSET
        try:
            async with asyncio.timeout(limit_ms / 1000):
                # What leaves the disk meanwhile would be in neither search.
                while found is None and searched < log.local_log_start_offset:
                    searched = log.local_log_start_offset
                    found = await reader.offset_by_timestamp(request.partition, log, timestamp)
        except TimeoutError as error:
            raise RequestTimedOut(
                f"{partition.topic_partition}: remote storage was not searched within {limit_ms} ms"
            ) from error
        partition.check_leader(current_leader_epoch)
        if found is None:
            return None
        return FoundOffset(*found) if found.offset < last_fetchable(log, isolation) else NOTHING


def _read_of(found: RemoteReadResult) -> PartitionRead:
    return PartitionRead(
        found.records,
        found.high_watermark,
        found.last_stable_offset,
        found.log_start_offset,
        found.aborted_transactions,
        is_remote=True,
    )
