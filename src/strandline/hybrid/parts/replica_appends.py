"""Appends to the log of a replica of this broker."""

from __future__ import annotations

from strandline.errors import InvalidProducerEpoch
from strandline.log import LogAppendInfo
from strandline.model import NO_TIMESTAMP, ProducerAndEpoch, TimestampMs
from strandline.records import NOT_VERIFIED, ProducerEntry, TransactionVerification, read_header
from strandline.replication import Append, Appended, Partition, wait_replicated


class ReplicaAppends:
    """See `PartitionAppends`."""

    __slots__ = ("local_replica",)

    def __init__(self, replica: Partition) -> None:
        self.local_replica = replica

    def append(self, append: Append) -> Appended:
        if append.verification is not NOT_VERIFIED:
            self._check_verified(append.records, append.verification)
        return self.local_replica.append(append)

    def _check_verified(self, records: memoryview, verification: TransactionVerification) -> None:
        """Refuse the first batch of a transaction if it does not fit what the coordinator has said of it.

        While the partition is being switched, the producer has to send it again: a batch that is held goes to the
        diskless part without the answer of its coordinator.
        """
        replica = self.local_replica
        if replica.gate is not None:
            replica.gate.check_not_held(records)
        header = read_header(records)
        if header.producer_id not in replica.log.producers.entries:
            ProducerEntry(header.producer_id).check_verified(header, verification)

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return self.local_replica.log.producers.is_in_transaction(producer)

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        self.local_replica.log.producers.check_epoch(producer)

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        self.check_epoch(producer)

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        """See `PartitionAppends`. One broker writes the log, and takes markers in the order in which they are sent.

        A marker that is refused because the producer has its epoch already may be one that was sent before and did not
        get its answer. The coordinator takes that for success: it has to be true on the other replicas, too.
        """
        replica = self.local_replica
        try:
            return await replica.append_and_wait(
                records, timeout_ms=timeout_ms, transaction_version=transaction_version
            )
        except InvalidProducerEpoch:
            await wait_replicated(replica, timeout_ms=timeout_ms)
            raise
