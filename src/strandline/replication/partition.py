"""One replica of one partition on this broker."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final
from uuid import UUID

from strandline.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.log import AppendOrigin, LogAppendInfo, PendingAppend, UnifiedLog
from strandline.metadata.image import PartitionImage
from strandline.model import (
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    BrokerId,
    LeaderEpoch,
    Offset,
    TimestampMs,
    TopicIdPartition,
    TopicPartition,
)
from strandline.reads import FetchIsolation, FoundOffset, ReadResult, Watcher
from strandline.replication.append import ACKS_ALL, Append, Appended, Done
from strandline.replication.gate import ClientGate
from strandline.replication.offsets import list_offset
from strandline.replication.writer import LogWriter

LARGE_APPEND: Final = 256 * 1024
DELETE_TO_HIGH_WATERMARK: Final = -1


class Partition:
    """The leader (or a follower) of a partition, with waiting producers and consumers. Lives on the event loop."""

    __slots__ = (
        "_end",
        "_waiting",
        "_watchers",
        "_writer",
        "gate",
        "id",
        "is_alone",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "node_id",
        "partition_epoch",
        "replicas",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, topic_id: UUID, log: UnifiedLog, *, node_id: BrokerId, writer: LogWriter
    ) -> None:
        self.topic_partition = topic_partition
        self.id = TopicIdPartition(topic_id, topic_partition)
        self.log = log
        self.node_id = node_id
        self.leader: BrokerId = NO_LEADER
        self.is_leader = False
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.partition_epoch = -1
        self.replicas: tuple[BrokerId, ...] = ()
        self.isr: tuple[BrokerId, ...] = ()
        self.is_alone = False
        """True if this broker leads and has the only replica: what is in its log is replicated."""
        self._writer = writer
        self._end: StrandlineError | None = None
        self.gate: ClientGate | None = None
        self._waiting: deque[tuple[Offset, Done]] = deque()
        self._watchers: set[Watcher] = set()

    @property
    def topic_id(self) -> UUID:
        """The id of its topic."""
        return self.id.topic_id

    # Leadership

    def follow(self, image: PartitionImage) -> bool:
        """Take the state that the metadata gives. True if this broker became or ceased to be the leader."""
        if image.partition_epoch < self.partition_epoch:
            return False
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.replicas, self.isr = image.replicas, image.isr
        self.leader, self.leader_epoch = image.leader, image.leader_epoch
        self.is_leader = image.leader == self.node_id
        self.is_alone = self.is_leader and self.isr == self.replicas == (self.node_id,)
        if self.is_leader:
            if old_epoch != image.leader_epoch:
                self.log.assign_epoch(image.leader_epoch, self.log.reserved_end)
            self._published()  # there may be records to read now, or readers of an epoch that is over
        elif was_leader:
            self._fail_waiting(self._no_leader())
        return was_leader != self.is_leader or (self.is_leader and old_epoch != image.leader_epoch)

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raise unless this broker leads the partition in the epoch the client knows."""
        if not self.is_leader:
            raise NotLeaderOrFollower(f"Broker {self.node_id} does not lead {self.topic_partition}.")
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            error = FencedLeaderEpoch if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch
            raise error(f"{self.topic_partition} is in epoch {self.leader_epoch}, not {current_leader_epoch}.")

    def _no_leader(self) -> NotLeaderOrFollower:
        return NotLeaderOrFollower(f"Broker {self.node_id} no longer leads {self.topic_partition}.")

    def close(self, error: StrandlineError) -> None:
        """The replica is removed: waiting producers and consumers get the error, at the latest after pending writes."""
        self.is_leader = False
        self._end = error
        self._fail_waiting(error)

    def _fail_waiting(self, error: StrandlineError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, done in waiting:
            done(error)
        if self.gate is not None:
            self.gate.stop_holding(error)
        self.notify_watchers()

    # Restrictions for clients

    def restrict(self) -> ClientGate:
        """The gate that appends of clients have to pass from now on."""
        if self.gate is None:
            self.gate = ClientGate(self.log)
        return self.gate

    def unseal(self) -> None:
        """Take appends of clients again, first those that were held."""
        if self.gate is not None:
            for held in self.gate.unseal():
                held.go_on(self.append)

    @property
    def is_sealed(self) -> bool:
        """True while no append of a client reaches the log."""
        return self.gate is not None and self.gate.is_sealed

    @property
    def has_open_transactions(self) -> bool:
        """True if a producer has a transaction open. One that has ended is not, but may hold `is_quiet` back."""
        return self.log.producers.has_open_transactions

    @property
    def is_quiet(self) -> bool:
        """True if nothing is being written, and the log is replicated and every transaction decided to its end."""
        offsets = self.log.offsets
        return not self.log.has_pending_appends and offsets.high_watermark == offsets.last_stable == offsets.end

    # Appending

    def append(self, append: Append) -> Appended:
        """Append batches as the leader; offsets are final when this returns.

        Raises the refusals of the log, of the replication rules and of the gate; then nothing was written.
        """
        self.check_leader()
        if self.gate is not None:
            if (held := self.gate.admit(append)) is not None:
                return held
            self.gate = None if self.gate.is_open else self.gate
        if append.acks == ACKS_ALL:
            self._check_enough_replicas(NotEnoughReplicas)
        log = self.log
        must_queue = log.has_pending_appends
        pending = log.begin_append(
            append.records,
            leader_epoch=self.leader_epoch,
            origin=append.origin,
            transaction_version=append.transaction_version,
        )
        info = pending.info
        if info.is_duplicate:
            return Appended(info, self._wait_for(info.last_offset + 1, append))
        if must_queue or info.size >= LARGE_APPEND or pending.must_leave_loop:
            if append.is_borrowed:
                pending.own_records()
            self._writer.submit(pending, lambda error: self._written(pending, append, error))
            return Appended(info, False, is_written=False)
        try:
            pending.write()
        except OSError as error:
            raise log.fail_append(error) from error
        log.finish_append(pending)
        self._published()
        return Appended(info, self._wait_for(info.last_offset + 1, append))

    def append_now(self, records: memoryview, origin: AppendOrigin = AppendOrigin.CLIENT) -> Offset:
        """Append an ordinary batch, replicated when this returns; its first offset. NO_OFFSET: `append` must do it."""
        is_ready = self.is_alone and self.is_leader and self.gate is None and not self._waiting
        if not is_ready or len(records) >= LARGE_APPEND:
            return NO_OFFSET
        first_offset = self.log.appender.append_now(records, self.leader_epoch, origin)
        if first_offset >= 0:
            self.log.offsets.update_high_watermark(self.log.offsets.end)
            self.notify_watchers()
        return first_offset

    def append_own_now(self, records: memoryview) -> Offset:
        """The same for a batch that a coordinator of this broker has built."""
        return self.append_now(records, AppendOrigin.COORDINATOR)

    def _written(self, pending: PendingAppend, append: Append, error: OSError | None) -> None:
        done = append.done
        if error is not None:
            refusal = self.log.fail_append(error)
            done(self._end or refusal)
            return
        if self.log.is_offline:
            done(self._end or KafkaStorageError(f"The log directory of {self.topic_partition} is offline."))
            return
        self.log.finish_append(pending)
        self._published()
        try:
            is_done = self._wait_for(pending.info.last_offset + 1, append)
        except NotEnoughReplicasAfterAppend as too_few:
            done(too_few)
        else:
            if is_done:
                done(None)
            elif not self.is_leader:
                self._fail_waiting(self._no_leader())
            elif append.written is not None:
                append.written()

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
        timeout_ms: int,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Append with acks=all and wait until it is replicated. Raises RequestTimedOut; the records stay.

        `transaction_version` is that of the client whose transaction a marker ends: its epochs are judged by it.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: StrandlineError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        appended = self.append(
            Append(records, acks=ACKS_ALL, origin=origin, done=done, transaction_version=transaction_version)
        )
        if not appended.is_done:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await future
            except TimeoutError as error:
                raise RequestTimedOut(
                    f"{self.topic_partition}: offset {appended.info.last_offset} was not replicated in {timeout_ms} ms."
                ) from error
        return appended.info

    @property
    def is_under_min_isr(self) -> bool:
        """True if too few replicas are in sync for acks=all: fewer than min.insync.replicas, and not all there are."""
        in_sync = len(self.isr)
        return in_sync < len(self.replicas) and in_sync < self.log.config.min_insync_replicas

    def _check_enough_replicas(self, error: type[StrandlineError]) -> None:
        if self.is_under_min_isr:
            raise error(
                f"{self.topic_partition} has {len(self.isr)} in-sync replicas, "
                f"min.insync.replicas is {self.log.config.min_insync_replicas}."
            )

    def _wait_for(self, offset: Offset, append: Append) -> bool:
        """True if everything below `offset` is durable enough already; otherwise `done` is called when it is."""
        offsets = self.log.offsets
        if append.acks != ACKS_ALL:
            if offsets.end >= offset:
                return True
        elif offsets.high_watermark >= offset:
            self._check_enough_replicas(NotEnoughReplicasAfterAppend)
            return True
        self._waiting.append((offset, append.done))
        return False

    # The high watermark

    def _published(self) -> None:
        self._advance_high_watermark()
        self.notify_watchers()

    def _advance_high_watermark(self) -> None:
        """With every in-sync replica on this broker, the high watermark is the end of the log.

        Below min.insync.replicas it stands still, as in Kafka 4: records on too few replicas stay invisible.
        """
        offsets = self.log.offsets
        if self.is_under_min_isr:
            return
        if self.isr == (self.node_id,):
            offsets.update_high_watermark(offsets.end)
        waiting, high_watermark = self._waiting, offsets.high_watermark
        while waiting and waiting[0][0] <= high_watermark:
            waiting.popleft()[1](None)

    # Waiting for data

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of every change until `unwatch`."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""
        self._watchers.discard(watcher)

    @property
    def is_watched(self) -> bool:
        """True if there are watchers."""
        return bool(self._watchers)

    def notify_watchers(self) -> None:
        """Let all watchers look again, as after an append."""
        if self._watchers:
            for watcher in tuple(self._watchers):
                watcher.notify()

    # Reading

    def list_offset(
        self, timestamp: TimestampMs, *, isolation: FetchIsolation, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> FoundOffset:
        """ListOffsets: a special timestamp or the first record at or after a time. Leader only."""
        self.check_leader(current_leader_epoch)
        return list_offset(self.log, timestamp, isolation=isolation, leader_epoch=self.leader_epoch)

    def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch: the largest epoch at or below `epoch`, and where it ended. Leader only."""
        self.check_leader(current_leader_epoch)
        return self.log.end_offset_for_epoch(epoch)

    def delete_records(self, before: Offset) -> Offset:
        """DeleteRecords: move the log start to `before` (-1: the high watermark). Returns the low watermark."""
        self.check_leader()
        if "delete" not in self.log.config.cleanup_policy:
            raise PolicyViolation(
                f"Records of {self.topic_partition.topic} cannot be deleted: its cleanup.policy has no `delete`."
            )
        high_watermark = self.log.high_watermark
        target = high_watermark if before == DELETE_TO_HIGH_WATERMARK else before
        if not 0 <= target <= high_watermark:
            raise OffsetOutOfRange(
                f"{self.topic_partition}: records can be deleted up to {high_watermark}, not up to {target}."
            )
        self.log.delete_records(target)
        self.notify_watchers()
        return self.log.log_start_offset

    def read(self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool) -> ReadResult:
        """Records from `offset` on, at most `max_bytes` unless the first batch is larger and must be given."""
        return self.log.read(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)
