"""What a replica does while its broker leads the partition: appends, the high watermark, producers that wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.errors import (
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    StrandlineError,
)
from strandline.log import AppendOrigin, PendingAppend
from strandline.model import NO_EPOCH, NO_OFFSET, BrokerId, LeaderEpoch, Offset
from strandline.replication.append import ACKS_ALL, Append, Appended, Done
from strandline.replication.followers import FollowerVisits
from strandline.replication.in_sync import is_under_min_isr
from strandline.replication.in_sync_set import InSyncSet, no_replica
from strandline.replication.waiting import WaitingProducers

if TYPE_CHECKING:
    from strandline.replication.partition import Partition

LARGE_APPEND: Final = 256 * 1024


class LeaderRole:
    """The role of the leader in one leader epoch. In the next epoch of the same leader another one takes its place.

    Nothing else moves the high watermark of a partition that this broker leads. A write that was begun in this role may
    end when its time is over. Then it tells the replica that the log has grown, and the role of that moment decides
    whether the high watermark moves; what was promised to its producer has ended with `WaitingProducers`.
    """

    __slots__ = (
        "_appender",
        "_deletions",
        "_waiting",
        "answers_at_once",
        "epoch",
        "epoch_start",
        "in_sync",
        "offsets",
        "replica",
    )

    def __init__(self, replica: Partition, before: LeaderRole | None) -> None:
        """`before`: the role before, if this broker led when it last looked.

        The metadata may have been read up to here at once. If there were epochs between, other brokers may have led in
        them: this log is as it was, but followers may have cut off theirs.
        """
        self.replica = replica
        self.epoch: Final = replica.leader_epoch
        self.offsets: Final = replica.log.offsets
        """Those of the log."""
        self._appender = replica.log.appender
        self._waiting: WaitingProducers = WaitingProducers() if before is None else before._waiting
        self.answers_at_once = False
        """True if this broker has the only replica: what `append_now` has appended is replicated when it returns."""
        self.epoch_start: Final = replica.log.reserved_end
        """Where the leader epoch began. What lies below was committed by earlier leaders, or has yet to be."""
        self.in_sync: InSyncSet | None = None if before is None else before.in_sync
        """The other replicas; None if there are none."""
        self._deletions: WaitingProducers | None = None if before is None else before._deletions
        """Those who wait until no replica has deleted records any more."""
        if self.in_sync is not None and before is not None:
            self.in_sync.begin_epoch(self.epoch_start, is_next=self.epoch == before.epoch + 1)

    def follow_in_sync_set(self, *, is_new_state: bool = True) -> None:
        """The metadata gives these replicas, and these in sync. See `InSyncSet.follow`."""
        replica, in_sync = self.replica, self.in_sync
        self.answers_at_once = replica.is_only_replica and replica.isr == replica.replicas
        if replica.is_only_replica:
            if in_sync is not None:
                in_sync.end()
                self.in_sync = None
        else:
            is_first = in_sync is None
            if in_sync is None:
                in_sync = self.in_sync = InSyncSet(replica, self.epoch_start)
            in_sync.follow(is_first=is_first, is_new_state=is_new_state)
        self.advance()
        self._release_deletions()

    def end(self, error: StrandlineError) -> None:
        """This broker does not lead any more: everything that waits for replicas is refused."""
        if self.in_sync is not None:
            self.in_sync.end()
        self._waiting.end(error)
        if self._deletions is not None:
            self._deletions.end(error)

    # Appending

    def append(self, append: Append) -> Appended:
        """See `Partition.append`."""
        replica = self.replica
        if replica.gate is not None and (held := replica.admit(append)) is not None:
            return held
        if append.acks == ACKS_ALL and not self.answers_at_once and replica.is_under_min_isr:
            raise NotEnoughReplicas(self._too_few())
        log = replica.log
        must_queue = log.has_pending_appends
        pending = log.begin_append(
            append.records,
            leader_epoch=self.epoch,
            origin=append.origin,
            transaction_version=append.transaction_version,
        )
        info = pending.info
        if info.is_duplicate:
            return Appended(info, self._is_durable(info.last_offset + 1, append))
        if must_queue or info.size >= LARGE_APPEND or pending.must_leave_loop:
            if append.is_borrowed:
                pending.own_records()
            replica.writer.submit(pending, lambda error: self._written(pending, append, error))
            return Appended(info, False, is_written=False)
        try:
            pending.write()
        except OSError as error:
            raise log.fail_append(error) from error
        log.finish_append(pending)
        if self.advance():
            replica.notify_watchers()
        if not self.answers_at_once:
            replica.notify_of_growth()
        return Appended(info, self._is_durable(info.last_offset + 1, append))

    def append_now(self, records: memoryview, origin: AppendOrigin = AppendOrigin.CLIENT) -> Offset:
        """Append an ordinary batch; its first offset. NO_OFFSET: nothing has happened, and `append` must do it.

        It is written when this returns, and replicated if the role `answers_at_once`. Else `wait_replicated` says
        whether it is, and tells when, if it is asked before anything else happens.
        """
        if self.replica.gate is not None or len(records) >= LARGE_APPEND:
            return NO_OFFSET
        if self.answers_at_once:
            first_offset = self._appender.append_now(records, self.epoch, origin)
            if first_offset >= 0:
                # Nobody waits: that takes a write under way, and behind one nothing is appended at once.
                self.offsets.update_high_watermark(self.offsets.end)
                self.replica.notify_watchers()
            return first_offset
        return self._append_for_others(records, origin)

    def append_own_now(self, records: memoryview) -> Offset:
        """The same for a batch that a coordinator of this broker has built."""
        return self.append_now(records, AppendOrigin.COORDINATOR)

    def _append_for_others(self, records: memoryview, origin: AppendOrigin) -> Offset:
        """`append_now` where other replicas have to have it too."""
        replica = self.replica
        if replica.is_under_min_isr:
            return NO_OFFSET
        first_offset = self._appender.append_now(records, self.epoch, origin)
        if first_offset >= 0:
            if self.advance():
                replica.notify_watchers()
            replica.notify_of_growth()
        return first_offset

    def wait_replicated(self, done: Done) -> bool:
        """True if everything is replicated that was appended by now. Else `done` will be called once: with None when
        it is, or with NotLeaderOrFollower, or why the replica was removed.

        Writes under way count: a follower that becomes the leader may have copied records that are not in the file yet.
        """
        return self.wait_replicated_to(self.offsets.reserved_end, done)

    def wait_replicated_to(self, end: Offset, done: Done) -> bool:
        """The same for everything below `end`, which has been appended."""
        if self.offsets.high_watermark >= end:
            return True
        self._waiting.add(end, done)
        return False

    @property
    def has_caught_up(self) -> bool:
        """False after an election, as long as the high watermark may be below that of the leader before (KIP-207)."""
        return self.offsets.high_watermark >= self.epoch_start

    def wait_caught_up(self, done: Done) -> bool:
        """True if it `has_caught_up`. Else `done` will be called once, as by `wait_replicated`."""
        return self.wait_replicated_to(self.epoch_start, done)

    def _written(self, pending: PendingAppend, append: Append, error: OSError | None) -> None:
        """A writer thread has carried out an append of this role, which may be over."""
        replica, waiting, done = self.replica, self._waiting, append.done
        log = replica.log
        if error is not None:
            refusal = log.fail_append(error)
            done(waiting.over or refusal)
            return
        if log.is_offline:
            done(waiting.over or KafkaStorageError(f"The log directory of {replica.topic_partition} is offline."))
            return
        log.finish_append(pending)
        replica.log_has_grown()
        if waiting.over is not None:
            # Another leader may have cut it off, whatever acks says; a broker with the only replica keeps its promise.
            done(None if replica.is_only_replica else waiting.over)
            return
        try:
            is_durable = self._is_durable(pending.info.last_offset + 1, append)
        except NotEnoughReplicasAfterAppend as too_few:
            done(too_few)
            return
        if is_durable:
            done(None)
        elif append.written is not None:
            append.written()

    def _is_durable(self, offset: Offset, append: Append) -> bool:
        """True if everything below `offset` is as durable as the acks ask for; otherwise `done` is called when it is.

        Raises NotEnoughReplicasAfterAppend.
        """
        if append.acks != ACKS_ALL:
            if self.offsets.end >= offset:
                return True
        elif self.offsets.high_watermark >= offset:
            if not self.answers_at_once and self._has_too_few():
                raise NotEnoughReplicasAfterAppend(self._too_few())
            return True
        self._waiting.add(offset, append.done)
        return False

    def _has_too_few(self) -> bool:
        """True if fewer than min.insync.replicas may be in sync."""
        replica, in_sync = self.replica, self.in_sync
        members = replica.isr if in_sync is None else in_sync.maximal
        return is_under_min_isr(len(members), len(replica.replicas), replica.log.config.min_insync_replicas)

    def _too_few(self) -> str:
        replica = self.replica
        return (
            f"{replica.topic_partition} has {len(replica.isr)} in-sync replicas, "
            f"min.insync.replicas is {replica.log.config.min_insync_replicas}."
        )

    # The high watermark

    def advance(self) -> bool:
        """Move the high watermark as far as every in-sync replica is known to have the log; it never goes back.

        True if it has moved: watchers have to be notified.

        Below min.insync.replicas it stands still, as in Kafka 4: records on too few replicas stay invisible.
        """
        offsets = self.offsets
        if self.answers_at_once:
            has_moved = offsets.update_high_watermark(offsets.end)
        else:
            if self.replica.is_under_min_isr:
                return False
            in_sync = self.in_sync
            reached = offsets.end if in_sync is None else in_sync.reached(offsets.end)
            has_moved = reached > offsets.high_watermark and offsets.update_high_watermark(reached)
        self._waiting.release(offsets.high_watermark)
        return has_moved

    # Followers

    def check_follower(self, broker: BrokerId, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raise unless the broker has a replica: UnknownLeaderEpoch if it may know newer metadata, else
        NotLeaderOrFollower."""
        if self.in_sync is None:
            raise no_replica(self.replica, broker, current_leader_epoch)
        self.in_sync.find(broker, current_leader_epoch)

    def follower_fetched(
        self, broker: BrokerId, broker_epoch: int, offset: Offset, log_start: Offset, leader_end_before_read: Offset
    ) -> None:
        """A follower fetches from `offset` on: it has everything below. Raises what `check_follower` raises, and
        NotLeaderOrFollower for an earlier incarnation of the broker; then nothing has changed.

        Not called for an offset beyond the end of the log, nor if the logs diverge below it.
        """
        in_sync = self.in_sync
        if in_sync is None:
            raise no_replica(self.replica, broker, NO_EPOCH)
        follower = in_sync.find(broker, NO_EPOCH)
        if not in_sync.fetched(follower, broker_epoch, offset, log_start, leader_end_before_read):
            return
        has_moved = self.advance()
        self._release_deletions()
        if has_moved:
            self.replica.notify_watchers()

    def follower_rests(self, broker: BrokerId, visits: FollowerVisits) -> bool:
        """A follower that is in sync has everything, and fetches it with each request of a session until it wakes.

        False if it has to be seen at each request: it is not in sync, and may be about to join.
        """
        in_sync = self.in_sync
        if in_sync is None or broker not in self.replica.isr:
            return False
        follower = in_sync.find(broker, NO_EPOCH)
        if follower.end != self.offsets.end:
            return False
        follower.rests(visits)
        return True

    def follower_wakes(self, broker: BrokerId, visits: FollowerVisits) -> None:
        """The partition has news for a follower that may rest in this session, or is not fetched there any more."""
        if self.in_sync is not None:
            self.in_sync.wake(broker, visits)

    # Deleting records

    @property
    def low_watermark(self) -> Offset:
        """No replica on a broker that is not fenced has records below; NO_OFFSET: not known yet."""
        return self.offsets.start if self.in_sync is None else self.in_sync.low_watermark

    def wait_deleted(self, before: Offset, done: Done) -> bool:
        """True if the low watermark has reached `before`. Else `done` will be called once, as by `wait_replicated`."""
        if self.low_watermark >= before:
            return True
        if self._deletions is None:
            self._deletions = WaitingProducers()
        self._deletions.add(before, done)
        return False

    def _release_deletions(self) -> None:
        if self._deletions is not None:
            self._deletions.release(self.low_watermark)
            if not self._deletions:
                self._deletions = None

    def check_in_sync_set(self) -> None:
        """Time has passed, or other brokers have changed.

        Followers that have not caught up for too long leave; fenced ones keep no records, and hold up no others.
        """
        if self.in_sync is None:
            return
        self.in_sync.propose_to_leave()
        self._release_deletions()
        before = self.offsets.high_watermark
        self.advance()  # one that was about to join may have held it up, and is not any more
        if self.offsets.high_watermark != before:
            self.replica.notify_watchers()
