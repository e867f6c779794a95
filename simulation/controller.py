"""The controller: the real plans over one image, and records that brokers learn late and at different times.

What the database does for real controllers is taken for granted here: there is one order of all decisions, and nobody
decides on anything but the newest image. A failover is a time in which nobody decides, after which every broker has a
whole session.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

from strandline.clock import Clock
from strandline.config import Settings
from strandline.errors import DuplicateBrokerRegistration, NotController, StrandlineError
from strandline.metadata import (
    EMPTY_IMAGE,
    BrokerHeartbeat,
    BrokerRegistration,
    ElectionType,
    HeartbeatReply,
    IsrChange,
    LeaderRecoveryState,
    MetadataDelta,
    MetadataImage,
    PartitionImage,
)
from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.controller.sessions import Sessions
from strandline.metadata.delta import apply_records
from strandline.metadata.image import ConfigResource, ConfigResourceType
from strandline.metadata.plans.election_requests import plan_balance, plan_elections
from strandline.metadata.plans.elections import PartitionChange, grouped
from strandline.metadata.plans.features import first_records
from strandline.metadata.plans.isr import plan_isr_changes
from strandline.metadata.plans.membership import BrokerState, MembershipPlanner, checked_broker, next_state, state_of
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord
from strandline.model import NO_LEADER, TopicPartition

CLUSTER: Final = "simulated"

Decided = Callable[[PartitionImage, PartitionImage], None]


class SimulatedController:
    """Calls raise StrandlineErrors, as those of a real one do."""

    def __init__(self, settings: Settings, clock: Clock, session_seconds: float) -> None:
        self.rules = ConfigRules(settings)
        self.membership = MembershipPlanner(self.rules)
        self.image: MetadataImage = EMPTY_IMAGE
        self.is_up = True
        self.followers: list[Callable[[MetadataDelta], None]] = []
        self.decided: Callable[[str, PartitionImage, PartitionImage], None] = lambda topic, before, after: None
        """Called with each partition that has changed."""
        self._sessions = Sessions(ListeningTime(clock), session_seconds)
        self.write(first_records(CLUSTER, self.rules))
        self._sessions.begin(self.image)

    def write(self, records: Iterable[MetadataRecord]) -> None:
        """Put records in order, and publish them."""
        listed = list(records)
        if not listed:
            return
        before = self.image
        delta = apply_records(before, enumerate(listed, before.offset + 1))
        self.image = delta.new
        for key, after in delta.changed_partitions.items():
            topic = before.topics.get(key.topic)
            if topic is not None:
                self.decided(key.topic, topic.partitions[key.partition], after)
        for follower in tuple(self.followers):
            follower(delta)

    # What brokers ask

    def _check(self) -> None:
        if not self.is_up:
            raise NotController("There is no controller at the moment.")

    def register_broker(self, broker: BrokerRegistration, *, may_replace: bool) -> int:
        """See `ControllerChannel`. `may_replace`: its lock in the database tells that the process before is dead."""
        self._check()
        known = self.image.brokers.get(broker.node_id)
        is_other = known is not None and known.incarnation_id != broker.incarnation_id
        if (
            known is not None
            and is_other
            and not may_replace
            and not known.in_controlled_shutdown
            and self._sessions.is_valid(known.node_id, known.epoch)
        ):
            raise DuplicateBrokerRegistration(f"Broker {broker.node_id} is registered.")
        accepted = self.membership.register(self.image, broker)
        self.write(accepted.records)
        self._sessions.touch(broker.node_id, accepted.answer.epoch)
        return accepted.answer.epoch

    def broker_heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        """See `ControllerChannel`."""
        self._check()
        broker = checked_broker(self.image, heartbeat.node_id, heartbeat.broker_epoch)
        self._sessions.touch(
            heartbeat.node_id, heartbeat.broker_epoch, heartbeat.current_metadata_offset, self.image.offset
        )
        is_seen = self._sessions.is_shutdown_seen(heartbeat.node_id, self.image)
        state = next_state(self.image, broker, heartbeat, is_shutdown_seen=is_seen)
        if state is not state_of(broker):
            self.write(self.membership.change_state(self.image, broker, state))
        if state is BrokerState.CONTROLLED_SHUTDOWN:
            self._sessions.begin_shutdown(heartbeat.node_id, self.image.offset)
        elif state is BrokerState.SHUTDOWN_NOW:
            self._sessions.forget(heartbeat.node_id)
        return HeartbeatReply(
            is_caught_up=heartbeat.current_metadata_offset >= heartbeat.broker_epoch,
            is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
            should_shut_down=state is BrokerState.SHUTDOWN_NOW,
        )

    def alter_partition(
        self, node_id: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[PartitionImage | StrandlineError]:
        """See `AltersPartitions`."""
        self._check()
        plan = plan_isr_changes(self.image, node_id, broker_epoch, changes, self.rules)
        self.write(plan.records)
        return plan.answer

    # What it does by itself

    def tick(self) -> None:
        """Fence brokers whose sessions have expired."""
        if self.is_up:
            for node in self._sessions.silent():
                self.fence(node)

    def fence(self, node: int) -> None:
        """The session of a broker is over, or its process is seen to be dead."""
        broker = self.image.brokers.get(node)
        if self.is_up and broker is not None and not broker.fenced:
            self._sessions.forget(node)
            self.write(self.membership.change_state(self.image, broker, BrokerState.FENCED))

    def go_down(self) -> None:
        """Its broker dies."""
        self.is_up = False

    def come_back(self) -> None:
        """Another one takes over."""
        self.is_up = True
        self._sessions.begin(self.image)

    # What administrators ask

    def create_topic(self, name: str, topic_id: UUID, assignments: Sequence[Sequence[int]], **config: str) -> None:
        """A topic, led by the first replica of each partition."""
        self.write(
            [
                TopicRecord(name=name, topic_id=topic_id),
                *(
                    PartitionRecord(
                        topic_id=topic_id,
                        partition=number,
                        replicas=tuple(replicas),
                        isr=tuple(replicas),
                        leader=replicas[0],
                    )
                    for number, replicas in enumerate(assignments)
                ),
                *(
                    ConfigRecord(
                        resource=ConfigResource(ConfigResourceType.TOPIC, name), key=key.replace("_", "."), value=value
                    )
                    for key, value in config.items()
                ),
            ]
        )

    def balance(self, topic: str) -> None:
        """Give partitions back to their preferred leaders."""
        if self.is_up:
            self.write(grouped(plan_balance(self.image, [topic], 10)))

    def elect(self, election: ElectionType, partition: TopicPartition) -> None:
        """ElectLeaders."""
        if self.is_up:
            self.write(plan_elections(self.image, election, [partition], self.rules).records)

    def grow(self, topic: str, number: int, chance: random.Random) -> None:
        """One more replica, if there is a broker without one."""
        found = self.image.topics[topic]
        partition = found.partitions[number]
        others = [node for node in sorted(self.image.brokers) if node not in partition.replicas]
        if self.is_up and others and partition.leader != NO_LEADER:
            wider = (*partition.replicas, chance.choice(others))
            self.write(grouped([PartitionChange(found.topic_id, number, replicas=wider)]))

    def is_unclean(self, before: PartitionImage, after: PartitionImage) -> bool:
        """True if a replica was elected that may lack committed records."""
        return (
            after.leader_epoch > before.leader_epoch
            and after.leader != NO_LEADER
            and after.leader_recovery_state is LeaderRecoveryState.RECOVERING
        )
