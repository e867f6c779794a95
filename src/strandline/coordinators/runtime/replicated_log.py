"""`CoordinatorLog` on the partitions of an internal topic that this broker leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from strandline.clock import Clock
from strandline.coordinators.runtime.log import (
    CoordinatorRecord,
    ReadBatch,
    ReadRecord,
    TransactionEnd,
    WriteDone,
    WriteResult,
)
from strandline.errors import CorruptMessage, InvalidProducerEpoch, NotEnoughReplicasAfterAppend, StrandlineError
from strandline.metadata import MetadataImage
from strandline.model import (
    NO_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    LeaderEpoch,
    Offset,
    ProducerAndEpoch,
    TopicPartition,
)
from strandline.reads import FetchIsolation
from strandline.records import (
    BatchHeader,
    Codec,
    ControlType,
    Record,
    build_batch,
    crc_matches,
    iter_headers,
    read_marker,
    read_records,
)
from strandline.replication import (
    LeaderRole,
    Partition,
    ReplicaManager,
    append_own,
    wait_pending_appends,
    wait_replicated,
    when_replicated,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic in which a coordinator keeps its state, and how it is written and read."""

    name: str
    partitions: int
    """The number of partitions the topic is created with; an existing topic counts its own."""
    codec: Codec
    load_buffer_bytes: int
    """How much is read at a time while a partition is loaded."""
    base_sequence: int = NO_SEQUENCE
    """What Kafka's coordinator writes where it has no producer: 0 for groups, -1 for transactions."""


class ReplicatedCoordinatorLog:
    """`CoordinatorLog` for one internal topic."""

    def __init__(
        self, replicas: ReplicaManager, image: Callable[[], MetadataImage], topic: InternalTopic, *, clock: Clock
    ) -> None:
        self._replicas, self._image, self._topic, self._clock = replicas, image, topic, clock

    def partition_count(self) -> int:
        topic = self._image().topics.get(self._topic.name)
        return self._topic.partitions if topic is None else len(topic.partitions)

    def max_batch_bytes(self, partition: int) -> int:
        return self._leader(partition).log.config.max_message_bytes

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        done: WriteDone,
        *,
        leader_epoch: LeaderEpoch,
        producer: ProducerAndEpoch | None = None,
    ) -> None:
        batch = memoryview(self._batch(records, producer))
        leader = self._leader(partition, leader_epoch)
        role = leader.role
        if producer is None and isinstance(role, LeaderRole):
            offset = role.append_own_now(batch)
            if offset >= 0:
                if role.wait_replicated(lambda error: done(WriteResult(error, offset))):
                    done(WriteResult(None, offset))
                return
        _append(leader, batch, done)

    def append_now(self, partition: int, records: Sequence[CoordinatorRecord], *, leader_epoch: LeaderEpoch) -> Offset:
        role = self._leader(partition, leader_epoch).role
        if not role.answers_at_once:
            return NO_OFFSET  # other replicas have to have it too: that takes longer than a call
        return role.append_own_now(memoryview(self._batch(records, None)))

    def _batch(self, records: Sequence[CoordinatorRecord], producer: ProducerAndEpoch | None) -> bytearray:
        stored = [Record(at, record.timestamp_ms, record.key, record.value) for at, record in enumerate(records)]
        if producer is None:
            return build_batch(stored, codec=self._topic.codec, base_sequence=self._topic.base_sequence)
        return build_batch(
            stored,
            codec=self._topic.codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=NO_SEQUENCE,
            is_transactional=True,
        )

    def append_marker(self, partition: int, end: TransactionEnd, done: WriteDone, *, leader_epoch: LeaderEpoch) -> None:
        leader = self._leader(partition, leader_epoch)
        try:
            _append(leader, end.batch(self._clock.now_ms()), done, transaction_version=end.transaction_version)
        except InvalidProducerEpoch as refusal:
            found = WriteResult(refusal)
            if when_replicated(leader, lambda error: done(found if error is None else WriteResult(error))):
                done(found)

    def check_epoch(self, partition: int, producer: ProducerAndEpoch) -> None:
        self._leader(partition).log.producers.check_epoch(producer)

    def has_transaction(self, partition: int, producer: ProducerAndEpoch) -> bool:
        return self._leader(partition).log.producers.is_in_transaction(producer)

    def delete_before(self, partition: int, offset: Offset, *, leader_epoch: LeaderEpoch) -> None:
        """Delete the records before an offset that is committed. Raises what `append` raises."""
        leader = self._leader(partition, leader_epoch)
        if offset > leader.log.log_start_offset:
            leader.delete_records(offset)

    async def read(self, partition: int, *, leader_epoch: LeaderEpoch) -> AsyncIterator[ReadBatch]:
        leader = self._leader(partition, leader_epoch)
        await wait_pending_appends(leader)  # they were copied from the leader before, and belong to the state
        position = leader.log.log_start_offset
        end = leader.log.log_end_offset
        while position < end:
            leader.check_leader()
            chunk = await self._read_chunk(leader, position)
            for at, header in iter_headers(chunk):
                if header.last_offset >= position:
                    yield _read_batch(chunk, at, header, leader.topic_partition)
                    position = header.next_offset
            if not chunk:
                break
        # Nothing is appended to a partition while it is loaded, so this is what was read.
        await wait_replicated(leader, timeout_ms=None)

    async def _read_chunk(self, leader: Partition, position: Offset) -> bytes:
        size = self._topic.load_buffer_bytes
        result = leader.read(position, size, isolation=FetchIsolation.LOG_END, min_one_message=True)
        if result.records is None:
            return b""
        return await asyncio.get_running_loop().run_in_executor(None, result.records.read)

    def _leader(self, partition: int, leader_epoch: LeaderEpoch = NO_EPOCH) -> Partition:
        leader = self._replicas.get_leader(TopicPartition(self._topic.name, partition))
        leader.check_leader(leader_epoch)
        return leader


def _append(leader: Partition, batch: memoryview, done: WriteDone, *, transaction_version: int = 0) -> None:
    """The way of every batch. It may take a thread, and other replicas."""
    offset = NO_OFFSET

    def ended(error: StrandlineError | None) -> None:
        if isinstance(error, NotEnoughReplicasAfterAppend):
            error = None  # the high watermark has passed it, and that is what counts for the state of a coordinator
        done(WriteResult(error, offset))

    appended = append_own(leader, batch, ended, transaction_version=transaction_version)
    offset = appended.info.first_offset
    if appended.is_done:
        done(WriteResult(None, offset))


def _read_batch(chunk: bytes, at: int, header: BatchHeader, where: TopicPartition) -> ReadBatch:
    if not crc_matches(chunk, at, header):
        raise CorruptMessage(f"The batch at offset {header.base_offset} of {where} does not match its checksum.")
    batch = memoryview(chunk)[at : at + header.size]
    if header.is_control:
        marker = read_marker(batch)
        committed = None if marker is None else marker.type is ControlType.COMMIT
        return ReadBatch(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            is_transactional=True,
            committed=committed,
        )
    return ReadBatch(
        records=tuple([ReadRecord(offset, key, value) for offset, _, key, value, _ in read_records(batch)]),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        is_transactional=header.is_transactional,
    )
