"""The followers of a partition that this broker leads: how far they are, who is in sync, and who is to be.

Only partitions with other replicas have one of these. It lasts as long as the broker leads, through all its leader
epochs. The in-sync set itself belongs to the controller: a leader proposes another one, and until it knows
what has become of the proposal, everything is judged by both. A follower that is to join counts for the high watermark
already, since the controller may have added it, and one that is to leave counts still (KIP-497).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from strandline.errors import (
    IneligibleReplica,
    NotLeaderOrFollower,
    OperationNotAttempted,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.metadata import IsrChange, IsrMember, PartitionImage
from strandline.model import NO_EPOCH, BrokerId, LeaderEpoch, Offset
from strandline.replication.followers import UNKNOWN_EPOCH, Follower, FollowerVisits
from strandline.replication.in_sync import high_watermark, is_caught_up, may_join, without
from strandline.replication.leader_environment import LeaderEnvironment

if TYPE_CHECKING:
    from strandline.replication.partition import Partition

logger = logging.getLogger(__name__)

_NOT_APPLIED: Final = (OperationNotAttempted, IneligibleReplica)
"""Errors after which the controller has surely not applied a proposal."""


class Proposal:
    """An `IsrProposal` of one partition, made in one partition epoch. What counts is whether it is still pending."""

    __slots__ = ("_owner", "change", "is_expansion", "maximal", "members")

    def __init__(
        self, owner: InSyncSet, change: IsrChange, members: tuple[BrokerId, ...], maximal: tuple[BrokerId, ...]
    ) -> None:
        self._owner: Final = owner
        self.change: Final = change
        self.members: Final = members
        """The in-sync set as it is to be."""
        self.maximal: Final = maximal
        """Everyone who may be in sync while it is not known what has become of it."""
        self.is_expansion: Final = len(members) > len(owner.committed)
        """True if a replica joins; else some leave."""

    @property
    def is_wanted(self) -> bool:
        return self._owner.pending is self

    def answered(self, result: PartitionImage | StrandlineError) -> None:
        self._owner.answered(self, result)


class InSyncSet:
    """See the module. Belongs to the event loop."""

    __slots__ = ("_clock", "_environment", "_followers", "_replica", "epoch_start", "pending")

    def __init__(self, replica: Partition, epoch_start: Offset) -> None:
        self._replica = replica
        self._environment: LeaderEnvironment = replica.environment
        self._clock = replica.log.env.clock
        self._followers: dict[BrokerId, Follower] = {}
        self.epoch_start = epoch_start
        """Where the leader epoch began."""
        self.pending: Proposal | None = None
        """A change of the in-sync set that the controller was asked for."""

    # Following the metadata

    def begin_epoch(self, epoch_start: Offset, *, is_next: bool) -> None:
        """This broker leads in another epoch. Called before `follow`.

        `is_next`: there was none between, so nobody else has led. Else nothing is known of the followers any more.
        """
        self.epoch_start = epoch_start
        now, end = self._clock.monotonic(), self._replica.log.offsets.end
        for follower in self._followers.values():
            is_in_sync = follower.broker in self._replica.isr
            follower.starts_anew(now, end, is_in_sync=is_in_sync, was_led_here=is_next)

    def follow(self, *, is_first: bool, is_new_state: bool) -> None:
        """The metadata gives these replicas, and these in sync.

        `is_first`: this broker did not lead before. `is_new_state`: it is another partition epoch, so whatever was
        proposed has been applied, or can not be any more.
        """
        replica, known = self._replica, self._followers
        others = [broker for broker in replica.replicas if broker != replica.node_id]
        if is_new_state:
            self.pending = None
        if [*known] == others:
            return
        now = self._clock.monotonic()
        self._followers = {broker: known.get(broker) or Follower(broker) for broker in others}
        if is_first:
            for follower in self._followers.values():
                follower.starts_anew(now, 0, is_in_sync=follower.broker in replica.isr, was_led_here=False)

    def end(self) -> None:
        """This broker does not lead any more: an answer of the controller is for the metadata."""
        self.pending = None

    # The high watermark

    @property
    def committed(self) -> tuple[BrokerId, ...]:
        """The in-sync set, as far as is known."""
        return self._replica.isr

    @property
    def maximal(self) -> tuple[BrokerId, ...]:
        """Everyone who may be in the in-sync set that the controller has."""
        pending = self.pending
        return self._replica.isr if pending is None else pending.maximal

    def reached(self, own_end: Offset) -> Offset:
        """How far every replica that counts has the log; NO_OFFSET if one has not fetched yet.

        A follower that is about to join counts as well: else the high watermark would run away from it.
        """
        maximal = self.maximal
        ends = [
            follower.end
            for follower in self._followers.values()
            if follower.end < own_end and (follower.broker in maximal or self._is_about_to_join(follower, own_end))
        ]
        return high_watermark(own_end, ends)

    def _is_about_to_join(self, follower: Follower, own_end: Offset) -> bool:
        return self._is_eligible(follower) and self._is_caught_up(follower, own_end, self._clock.monotonic())

    def _is_eligible(self, follower: Follower) -> bool:
        replica = self._replica
        return self._environment.brokers.is_eligible(
            follower.broker, follower.broker_epoch, replica.topic_id, replica.topic_partition.partition
        )

    def _is_caught_up(self, follower: Follower, own_end: Offset, now: float) -> bool:
        return is_caught_up(
            follower.end,
            own_end,
            caught_up_at=follower.caught_up_at,
            now=now,
            lag_seconds=self._environment.lag_seconds,
        )

    @property
    def low_watermark(self) -> Offset:
        """The offset below which no replica on a broker that is not fenced has a record; NO_OFFSET: not known yet."""
        brokers = self._environment.brokers
        lowest = self._replica.log.log_start_offset
        for follower in self._followers.values():
            if follower.log_start < lowest and not brokers.is_fenced(follower.broker):
                lowest = follower.log_start
        return lowest

    # Followers fetch

    def find(self, broker: BrokerId, current_leader_epoch: LeaderEpoch) -> Follower:
        """The follower. Raises UnknownLeaderEpoch, or NotLeaderOrFollower, if the broker has no replica."""
        follower = self._followers.get(broker)
        if follower is None:
            raise no_replica(self._replica, broker, current_leader_epoch)
        return follower

    def wake(self, broker: BrokerId, visits: FollowerVisits) -> None:
        """It does not rest in that session any more, if it did. Harmless for a broker without a replica."""
        follower = self._followers.get(broker)
        if follower is not None and follower.rests_in is visits:
            follower.wakes()

    def fetched(self, follower: Follower, broker_epoch: int, offset: Offset, log_start: Offset, end: Offset) -> bool:
        """A follower fetches from `offset` on, which is in the log, and the log ended at `end` before it was read.

        True if the high watermark or the low watermark may move. Raises NotLeaderOrFollower for an earlier incarnation
        of the broker. One that the metadata does not show yet is served, but nothing is believed of it until it does:
        anything could name a broker.
        """
        registered = self._environment.brokers.epoch_of(follower.broker)
        if broker_epoch != registered:
            if 0 <= broker_epoch < registered:
                raise NotLeaderOrFollower(
                    f"Broker {follower.broker} is registered with epoch {registered}, and a Fetch came from an "
                    f"earlier incarnation with epoch {broker_epoch}."
                )
            return False
        has_moved = follower.end != offset or follower.log_start != log_start
        follower.fetched(offset, log_start, end, broker_epoch, self._clock.monotonic())
        if self.pending is None and follower.broker not in self._replica.isr:
            self._propose_to_join(follower)
        return has_moved

    # Changes of the in-sync set

    def _propose_to_join(self, follower: Follower) -> None:
        replica = self._replica
        offsets = replica.log.offsets
        if not may_join(follower.end, high_watermark=offsets.high_watermark, epoch_start=self.epoch_start):
            return
        if self._is_eligible(follower):
            members = (*replica.isr, follower.broker)
            self._propose(members, members, f"broker {follower.broker} has caught up")

    def propose_to_leave(self) -> None:
        """Ask for an in-sync set without followers that have not caught up for replica.lag.time.max.ms."""
        if self.pending is not None:
            return
        replica, now = self._replica, self._clock.monotonic()
        end = replica.log.offsets.end
        out = []
        for broker in replica.isr:
            follower = self._followers.get(broker)
            if broker != replica.node_id and (follower is None or not self._is_caught_up(follower, end, now)):
                out.append(broker)
        if out:
            lagging = ", ".join(map(str, out))
            seconds = f"{self._environment.lag_seconds:g} s"
            self._propose(without(replica.isr, out), replica.isr, f"{lagging} has not caught up for {seconds}")

    def _propose(self, members: tuple[BrokerId, ...], maximal: tuple[BrokerId, ...], reason: str) -> None:
        replica = self._replica
        change = IsrChange(
            topic_id=replica.topic_id,
            partition=replica.topic_partition.partition,
            leader_epoch=replica.leader_epoch,
            partition_epoch=replica.partition_epoch,
            isr=tuple([IsrMember(broker, self._broker_epoch(broker)) for broker in members]),
        )
        proposal = Proposal(self, change, members, maximal)
        self.pending = proposal
        if not self._environment.changes.submit(proposal):
            self.pending = None
            return
        logger.info("%s: in sync are to be %s instead of %s: %s", replica.topic_partition, members, replica.isr, reason)

    def _broker_epoch(self, broker: BrokerId) -> int:
        if broker == self._replica.node_id:
            return self._environment.brokers.own_epoch
        follower = self._followers.get(broker)
        return -1 if follower is None or follower.broker_epoch == UNKNOWN_EPOCH else follower.broker_epoch

    def answered(self, proposal: Proposal, result: PartitionImage | StrandlineError) -> None:
        """What the controller says of a proposal. Without effect if metadata has overtaken it.

        After most errors it stays pending: it may have been applied, and the metadata will tell.
        """
        if self.pending is not proposal:
            return
        replica = self._replica
        if isinstance(result, StrandlineError):
            if isinstance(result, _NOT_APPLIED):
                self.pending = None
                replica.in_sync_set_has_changed()
            logger.info("%s: the controller refused %s: %s", replica.topic_partition, proposal.members, result)
        elif result.leader_epoch == replica.leader_epoch and result.partition_epoch >= replica.partition_epoch:
            self.pending = None
            replica.isr, replica.partition_epoch = result.isr, result.partition_epoch
            replica.in_sync_set_has_changed()


def no_replica(replica: Partition, broker: BrokerId, current_leader_epoch: LeaderEpoch) -> StrandlineError:
    """The refusal of a broker that has no replica, as far as is known here: the follower may know newer metadata."""
    sentence = f"Broker {broker} has no replica of {replica.topic_partition}; those have {replica.replicas}."
    return NotLeaderOrFollower(sentence) if current_leader_epoch == NO_EPOCH else UnknownLeaderEpoch(sentence)
