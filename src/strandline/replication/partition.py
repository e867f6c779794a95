"""One replica of one partition on this broker: what is known of it, and its role."""

from __future__ import annotations

from typing import Final, TypeAlias
from uuid import UUID

from strandline.config import TopicConfig
from strandline.errors import (
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.log import AppendOrigin, LogAppendInfo, UnifiedLog
from strandline.metadata import PartitionImage
from strandline.model import (
    NO_EPOCH,
    NO_LEADER,
    BrokerId,
    LeaderEpoch,
    Offset,
    TimestampMs,
    TopicIdPartition,
    TopicPartition,
)
from strandline.reads import FetchIsolation, FoundOffset, ReadResult, Watcher
from strandline.replication.append import ACKS_ALL, Append, Appended
from strandline.replication.completion import Completion
from strandline.replication.follower import FollowerRole, does_not_lead
from strandline.replication.gate import ClientGate
from strandline.replication.in_sync import is_under_min_isr
from strandline.replication.leader import LeaderRole
from strandline.replication.leader_environment import ALONE, LeaderEnvironment
from strandline.replication.offsets import list_offset
from strandline.replication.writer import LogWriter

DELETE_TO_HIGH_WATERMARK: Final = -1

Role: TypeAlias = LeaderRole | FollowerRole


class Partition:
    """The state of a replica, whatever its role is, and its role at the moment. Lives on the event loop.

    `role` is another object with each change of leadership: ask for it when it is needed, and do not keep it.
    """

    __slots__ = (
        "_growth_watchers",
        "_watchers",
        "environment",
        "gate",
        "id",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "node_id",
        "partition_epoch",
        "replicas",
        "role",
        "topic_partition",
        "writer",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: UnifiedLog,
        *,
        node_id: BrokerId,
        writer: LogWriter,
        environment: LeaderEnvironment = ALONE,
    ) -> None:
        self.topic_partition = topic_partition
        self.id = TopicIdPartition(topic_id, topic_partition)
        self.log = log
        self.node_id = node_id
        self.writer = writer
        self.environment = environment
        """For the leader: other brokers, and the way to another in-sync set."""
        self.leader: BrokerId = NO_LEADER
        self.is_leader = False
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.partition_epoch = -1
        self.replicas: tuple[BrokerId, ...] = ()
        self.isr: tuple[BrokerId, ...] = ()
        self.role: Role = FollowerRole(node_id, topic_partition)
        self.gate: ClientGate | None = None
        """What keeps clients from appending, if anything does.

        It belongs to the replica and not to its role: a seal guards the boundary that the log is to have, or has, and a
        leader of the next epoch must not append behind it either. What ends with a role is the holding of appends:
        their clients have to go to another leader.
        """
        self._watchers: set[Watcher] = set()
        self._growth_watchers: set[Watcher] | None = None  # only where there are followers

    @property
    def topic_id(self) -> UUID:
        """The id of its topic."""
        return self.id.topic_id

    # Leadership

    def follow(self, image: PartitionImage) -> bool:
        """Take the state that the metadata gives, and the role that follows from it.

        True if the leader, its epoch or the role of this broker has changed. An older state is left alone; one of the
        same partition epoch may say more than the controller's answer, which has brought its in-sync set before.
        """
        if image.partition_epoch < self.partition_epoch:
            return False
        was_leader, old_leader, old_epoch = self.is_leader, self.leader, self.leader_epoch
        is_new_state = image.partition_epoch != self.partition_epoch or image.isr != self.isr
        self.partition_epoch = image.partition_epoch
        self.replicas, self.isr = image.replicas, image.isr
        self.leader, self.leader_epoch = image.leader, image.leader_epoch
        self.is_leader = image.leader == self.node_id
        if self.is_leader:
            if old_epoch != image.leader_epoch:
                self.log.assign_epoch(image.leader_epoch, self.log.reserved_end)
            self._lead(is_new_state=is_new_state)
            self.notify_watchers()  # there may be records to read now, or readers of an epoch that is over
        elif was_leader:
            self._stop_leading(NotLeaderOrFollower(f"Broker {self.node_id} no longer leads {self.topic_partition}."))
        return was_leader != self.is_leader or old_leader != image.leader or old_epoch != image.leader_epoch

    def _lead(self, *, is_new_state: bool) -> None:
        before = self.role if isinstance(self.role, LeaderRole) else None
        if before is None or before.epoch != self.leader_epoch:
            self.role = role = LeaderRole(self, before)
        else:
            role = before
        role.follow_in_sync_set(is_new_state=is_new_state)

    def in_sync_set_has_changed(self) -> None:
        """The controller has answered a leader before the metadata did."""
        if self.role.advance():
            self.notify_watchers()

    def _stop_leading(self, error: StrandlineError) -> None:
        role, self.role = self.role, FollowerRole(self.node_id, self.topic_partition)
        if isinstance(role, LeaderRole):
            role.end(error)
        if self.gate is not None:
            self.gate.stop_holding(error)
        self.notify_watchers()

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raise unless this broker leads the partition in the epoch the client knows."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            error = FencedLeaderEpoch if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch
            raise error(f"{self.topic_partition} is in epoch {self.leader_epoch}, not {current_leader_epoch}.")
        if not self.is_leader:
            raise does_not_lead(self.node_id, self.topic_partition)

    @property
    def is_only_replica(self) -> bool:
        """True if no other broker has a replica: then no other one can lead, and nothing in this log be cut off."""
        return self.replicas == (self.node_id,)

    @property
    def is_under_min_isr(self) -> bool:
        """True if too few replicas are in sync for acks=all: fewer than min.insync.replicas, and not all there are."""
        return is_under_min_isr(len(self.isr), len(self.replicas), self.log.config.min_insync_replicas)

    def close(self, error: StrandlineError) -> None:
        """The replica is removed: waiting producers and consumers get the error, at the latest after pending writes."""
        self.is_leader = False
        self._stop_leading(error)

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

    def admit(self, append: Append) -> Appended | None:
        """The answer to an append that the gate holds; None if it may go on. Raises the refusals of the gate."""
        gate = self.gate
        if gate is not None:
            if (held := gate.admit(append)) is not None:
                return held
            self.gate = None if gate.is_open else gate
        return None

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
        return self.role.append(append)

    def log_has_grown(self) -> None:
        """Records were written, by this role or by an earlier one: the high watermark may move."""
        if self.role.advance():
            self.notify_watchers()
        self.notify_of_growth()

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
        completion = Completion()
        appended = self.append(
            Append(records, acks=ACKS_ALL, origin=origin, done=completion.done, transaction_version=transaction_version)
        )
        if not appended.is_done and not await completion.wait(timeout_ms):
            raise RequestTimedOut(
                f"{self.topic_partition}: offset {appended.info.last_offset} was not replicated in {timeout_ms} ms."
            )
        return appended.info

    def update_config(self, config: TopicConfig) -> None:
        """Other settings are in force. With a lower min.insync.replicas, what waits may be replicated by now.

        Nothing else would look: producers only repeat what is in the log, and followers have all of it.
        """
        self.log.update_config(config)
        self.log_has_grown()

    # Waiting for data

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of all that readers up to the high watermark can see, until `unwatch`.

        An append is not among it where it has yet to be replicated: such readers would look in vain. See
        `watch_growth`.
        """
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""
        self._watchers.discard(watcher)

    def watch_growth(self, watcher: Watcher) -> None:
        """Notify `watcher` of records that are in the log and not replicated, as well, until `unwatch_growth`."""
        if self._growth_watchers is None:
            self._growth_watchers = set()
        self._growth_watchers.add(watcher)

    def unwatch_growth(self, watcher: Watcher) -> None:
        """Stop notifying of these. Harmless for one that is not notified."""
        if self._growth_watchers is not None:
            self._growth_watchers.discard(watcher)

    @property
    def is_watched(self) -> bool:
        """True if there are watchers."""
        return bool(self._watchers)

    def notify_watchers(self) -> None:
        """Let all watchers look again, as after the high watermark has moved."""
        if self._watchers:
            for watcher in tuple(self._watchers):
                watcher.notify()

    def notify_of_growth(self) -> None:
        """Let those look again who see records before they are replicated."""
        if self._growth_watchers:
            for watcher in tuple(self._growth_watchers):
                watcher.notify()

    # Reading

    def list_offset(
        self, timestamp: TimestampMs, *, isolation: FetchIsolation, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> FoundOffset:
        """ListOffsets: a special timestamp or the first record at or after a time. Leader only.

        Raises OffsetNotAvailable for a client that asks what a new leader does not know yet (KIP-207).
        """
        self.check_leader(current_leader_epoch)
        role = self.role
        has_caught_up = isolation is FetchIsolation.LOG_END or (isinstance(role, LeaderRole) and role.has_caught_up)
        return list_offset(
            self.log, timestamp, isolation=isolation, leader_epoch=self.leader_epoch, has_caught_up=has_caught_up
        )

    def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch: the largest epoch at or below `epoch`, and where it ended. Leader only."""
        self.check_leader(current_leader_epoch)
        return self.log.end_offset_for_epoch(epoch)

    def delete_records(self, before: Offset) -> Offset:
        """DeleteRecords: move the log start to `before` (-1: the high watermark). Returns where it is.

        Other replicas follow: `wait_deleted`.
        """
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

    async def wait_deleted(self, before: Offset, *, timeout_ms: int) -> Offset:
        """Wait until no replica on a broker that is not fenced has records below `before`; the low watermark.

        Raises NotLeaderOrFollower, also if leadership is lost meanwhile, or RequestTimedOut; the deletion stands.
        """
        role = self.role
        if not isinstance(role, LeaderRole):
            raise does_not_lead(self.node_id, self.topic_partition)
        if role.in_sync is not None:
            completion = Completion()
            if not role.wait_deleted(before, completion.done) and not await completion.wait(timeout_ms):
                raise RequestTimedOut(
                    f"{self.topic_partition}: records below {before} were deleted here, and not by every replica in "
                    f"{timeout_ms} ms."
                )
        return role.low_watermark

    def read(self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool) -> ReadResult:
        """Records from `offset` on, at most `max_bytes` unless the first batch is larger and must be given."""
        return self.log.read(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)
