"""Three brokers with the log of one partition, as far as decisions of the controller depend on it. Nothing is real.

The controller is real planners over a real image. A log is a tuple of record numbers. Brokers learn of metadata when
they are told, so a leader may not know that it is none any more.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.metadata import (
    EMPTY_IMAGE,
    BrokerRegistration,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    DirectoryAssignment,
    ElectionType,
    IsrChange,
    IsrMember,
    LeaderRecoveryState,
    Listener,
    MetadataImage,
    PartitionImage,
)
from strandline.metadata.delta import apply_records
from strandline.metadata.plans.configs import ConfigPlanner
from strandline.metadata.plans.directories import DirectoryPlanner
from strandline.metadata.plans.election_requests import plan_balance, plan_elections
from strandline.metadata.plans.elections import PartitionChange, grouped
from strandline.metadata.plans.features import first_records
from strandline.metadata.plans.isr import plan_isr_changes
from strandline.metadata.plans.membership import BrokerState, MembershipPlanner
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import MetadataRecord, PartitionRecord, TopicRecord
from strandline.model import NO_LEADER, TopicPartition

TOPIC = "t"
TOPIC_ID = uuid.UUID(int=1)
NODES = (1, 2, 3)
NOT_YET = PartitionImage(0, (), (), NO_LEADER, -1, -1)


@dataclass(slots=True, kw_only=True)
class Replica:
    """A broker. `durable` of its records survive a crash of its machine; `disk` changes when it is wiped.

    It has a second log directory, which never fails; the log is in the first one. That `is_away` after it has failed,
    until a start at which it is there again, perhaps without what was written last. `shelf` is what is in it meanwhile.
    """

    node_id: int
    log: tuple[int, ...] = ()
    durable: int = 0
    disk: int = 0
    epoch: int = -1
    kept_epoch: int = -1
    is_running: bool = False
    is_away: bool = False
    has_failed: bool = False
    shelf: tuple[int, ...] = ()
    incarnation: int = 0
    view: PartitionImage = NOT_YET
    min_isr: int = 1
    epoch_start: int = 0
    high_watermark: int = 0
    ends: dict[int, tuple[int, int]] = field(default_factory=dict)  # follower -> end, broker epoch
    pending: IsrChange | None = None

    @property
    def leads(self) -> bool:
        return self.is_running and not self.is_away and self.view.leader == self.node_id

    @property
    def directory(self) -> uuid.UUID:
        return uuid.UUID(int=1000 + self.node_id * 1000 + self.disk)

    @property
    def other_directory(self) -> uuid.UUID:
        return uuid.UUID(int=500 + self.node_id)


@dataclass(slots=True)
class ReplicatedPartition:
    """The controller's image, and the brokers."""

    replicas: tuple[int, ...]
    min_isr: int
    image: MetadataImage = EMPTY_IMAGE
    brokers: dict[int, Replica] = field(default_factory=dict)
    proposals: list[tuple[int, int, IsrChange]] = field(default_factory=list)
    committed: tuple[int, ...] = ()
    committed_from: int = 0  # commits of earlier leader epochs do not count: an unclean election gave them up
    unclean: int = 0
    next_record: int = 0
    rules: ConfigRules = field(default_factory=lambda: ConfigRules(Settings.from_properties({"node.id": "1"})))

    def __post_init__(self) -> None:
        self.write(first_records("c", self.rules))
        self.brokers = {node: Replica(node_id=node) for node in NODES}
        for node in NODES:
            self.start(node)
            self.unfence(node)
        first = self.replicas[0]
        record = PartitionRecord(
            topic_id=TOPIC_ID, partition=0, replicas=self.replicas, isr=self.replicas, leader=first
        )
        self.write([TopicRecord(name=TOPIC, topic_id=TOPIC_ID), record])
        self.set_min_isr(self.min_isr)
        for node in NODES:
            self.learn(node)

    # The controller

    @property
    def partition(self) -> PartitionImage:
        return self.image.topics[TOPIC].partitions[0]

    @property
    def membership(self) -> MembershipPlanner:
        return MembershipPlanner(self.rules)

    @property
    def directories(self) -> DirectoryPlanner:
        return DirectoryPlanner(self.rules)

    @property
    def enough(self) -> int:
        """As many in-sync replicas commit a record."""
        settings = self.rules.topic_config(self.image, TOPIC)
        return min(settings.min_insync_replicas, len(self.partition.replicas))

    def write(self, records: Iterable[MetadataRecord]) -> None:
        had_topic = TOPIC in self.image.topics
        before = self.partition if had_topic else NOT_YET
        self.image = apply_records(self.image, enumerate(records, self.image.offset + 1)).new
        if had_topic:
            self.check_decision(before, self.partition)

    def check_decision(self, before: PartitionImage, after: PartitionImage) -> None:
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch >= before.partition_epoch
        if after._replace(directories=()) != before._replace(directories=()):
            assert after.partition_epoch > before.partition_epoch
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch
        if after.leader_epoch > before.leader_epoch and after.leader != NO_LEADER:
            assert self.image.is_available(after, after.leader)
            if after.leader not in (*before.isr, *before.elr):
                assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING
                self.unclean += 1
                self.committed, self.committed_from = (), after.leader_epoch
            elif (
                self.is_current(after.leader) and not self.brokers[after.leader].is_away
            ):  # otherwise the broker loses what it was given when it registers
                log = self.brokers[after.leader].log
                assert log[: len(self.committed)] == self.committed, "a clean leader has every committed record"

    def is_current(self, node: int) -> bool:
        """True if the broker runs, and is the incarnation that is registered."""
        broker = self.brokers[node]
        return broker.is_running and broker.epoch == self.image.brokers[node].epoch

    def fence(self, node: int) -> None:
        self.change(node, BrokerState.FENCED)

    def unfence(self, node: int) -> None:
        self.change(node, BrokerState.UNFENCED)

    def change(self, node: int, state: BrokerState) -> None:
        self.write(self.membership.change_state(self.image, self.image.brokers[node], state))

    def set_min_isr(self, value: int) -> None:
        change = ConfigChange("min.insync.replicas", ConfigOperation.SET, str(value))
        resource = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
        wish = ConfigAlteration(resource=resource, changes=[change])
        self.write(ConfigPlanner(rules=self.rules).plan(self.image, [wish]).records)

    def elect(self, election: ElectionType) -> None:
        wanted = [TopicPartition(TOPIC, 0)]
        self.write(plan_elections(self.image, election, wanted, self.rules).records)

    def balance(self) -> None:
        self.write(grouped(plan_balance(self.image, [TOPIC], 10)))

    def grow(self) -> None:
        missing = tuple(node for node in NODES if node not in self.partition.replicas)
        if missing:
            wider = PartitionChange(TOPIC_ID, 0, replicas=(*self.partition.replicas, *missing))
            self.write(grouped([wider]))

    # Brokers

    def start(self, node: int) -> None:
        """The broker starts and registers. What it says of itself is the truth."""
        broker = self.brokers[node]
        broker.incarnation += 1
        broker.is_running = True
        registration = BrokerRegistration(
            node_id=node,
            incarnation_id=uuid.UUID(int=node * 1000 + broker.incarnation),
            listeners=(Listener("PLAINTEXT", "host", 9092),),
            previous_broker_epoch=broker.kept_epoch,
            log_dirs=(broker.other_directory,) if broker.is_away else (broker.directory, broker.other_directory),
        )
        accepted = self.membership.register(self.image, registration)
        self.write(accepted.records)
        broker.epoch = broker.kept_epoch = accepted.answer.epoch
        broker.view, broker.ends, broker.pending = NOT_YET, {}, None
        broker.has_failed = False

    def name_directory(self, node: int) -> None:
        """The broker tells in which directory it has the log."""
        broker = self.brokers[node]
        if self.is_current(node) and not broker.is_away and node in self.partition.replicas:
            wish = DirectoryAssignment(TOPIC_ID, 0, broker.directory)
            self.write(self.directories.assign(self.image, node, broker.epoch, [wish]).records)

    def fail_directory(self, node: int, *, lost: int) -> None:
        """The directory fails; if it comes back, so many records that were not durable are missing."""
        broker = self.brokers[node]
        if broker.is_running and not broker.is_away and broker.directory in self.partition.directories:
            broker.shelf = broker.log[: max(broker.durable, len(broker.log) - lost)]
            broker.is_away = broker.has_failed = True
            broker.log, broker.durable, broker.pending = (), 0, None
            broker.kept_epoch = -1

    def tell_of_failure(self, node: int) -> None:
        """A heartbeat names the directory that has failed."""
        broker = self.brokers[node]
        if broker.has_failed and self.is_current(node):
            known = self.image.brokers[node]
            self.write(self.directories.fail(self.image, known, [broker.directory]))

    def bring_back(self, node: int, *, is_replaced: bool) -> None:
        """While the broker is down: its directory is there again, or another one in its place, which is empty."""
        broker = self.brokers[node]
        if broker.is_away and not broker.is_running:
            broker.is_away = False
            broker.log = () if is_replaced else broker.shelf
            broker.durable, broker.kept_epoch = len(broker.log), -1
            broker.disk += is_replaced

    def stop(self, node: int, *, lost: int = 0, is_machine: bool = False, is_wiped: bool = False) -> None:
        """The process ends. A machine that crashes loses so many records that were not durable; a disk all."""
        broker = self.brokers[node]
        broker.is_running = False
        if is_machine:
            broker.shelf = broker.shelf[: len(broker.shelf) - lost]
            broker.log = broker.log[: max(broker.durable, len(broker.log) - lost)]
            broker.kept_epoch = -1
        if is_wiped:
            broker.is_away = False
            broker.log, broker.durable, broker.disk, broker.kept_epoch = (), 0, broker.disk + 1, -1

    def flush(self, node: int) -> None:
        self.brokers[node].durable = len(self.brokers[node].log)

    def learn(self, node: int) -> None:
        """The broker applies the newest metadata."""
        broker, after = self.brokers[node], self.partition
        if not broker.is_running:
            return
        broker.min_isr = self.enough
        if after.partition_epoch == broker.view.partition_epoch:
            return
        broker.pending = None
        if after.leader_epoch != broker.view.leader_epoch:
            broker.epoch_start, broker.ends = len(broker.log), {}
        broker.view = after
        self.commit(broker)

    def append(self, node: int) -> None:
        broker = self.brokers[node]
        if broker.leads:
            self.next_record += 1
            broker.log += (self.next_record,)
            self.commit(broker)

    def fetch(self, node: int, leader: int) -> None:
        """A follower asks for what follows its end. It says what it has, and gets the rest, or drops what differs."""
        follower, source = self.brokers[node], self.brokers[leader]
        knows = (
            follower.is_running
            and not follower.is_away
            and source.leads
            and node != leader
            and follower.view.leader == leader
        )
        if not knows or follower.view.leader_epoch != source.view.leader_epoch or node not in source.view.replicas:
            return
        if follower.log != source.log[: len(follower.log)]:
            same = 0
            while same < min(len(follower.log), len(source.log)) and follower.log[same] == source.log[same]:
                same += 1
            follower.log, follower.durable = follower.log[:same], min(follower.durable, same)
            return
        source.ends[node] = (len(follower.log), follower.epoch)
        follower.log = source.log
        follower.high_watermark = min(source.high_watermark, len(follower.log))
        self.commit(source)

    def commit(self, leader: Replica) -> None:
        """The high watermark, over the members of the in-sync set and those that may be in it by now."""
        if not leader.leads or len(leader.view.isr) < leader.min_isr:
            return
        pending = () if leader.pending is None else (member.node_id for member in leader.pending.isr)
        others = {*leader.view.isr, *pending} - {leader.node_id}
        end = min([len(leader.log), *(leader.ends.get(node, (0, -1))[0] for node in others)])
        leader.high_watermark = max(leader.high_watermark, end)
        now = leader.log[:end]
        if leader.view.leader_epoch < self.committed_from:
            return
        if len(now) > len(self.committed):
            assert now[: len(self.committed)] == self.committed, "what is committed is never replaced"
            self.committed = now
        else:
            assert self.committed[: len(now)] == now

    def propose(self, node: int, wanted: Sequence[int]) -> None:
        """The leader asks for another in-sync set, with those that may join, if no other change is under way."""
        leader = self.brokers[node]
        if not leader.leads or leader.pending is not None:
            return
        isr = [
            one
            for one in leader.view.replicas
            if one == node or (one in wanted and (one in leader.view.isr or self.may_join(leader, one)))
        ]
        if set(isr) == set(leader.view.isr):
            return
        change = IsrChange(
            topic_id=TOPIC_ID,
            partition=0,
            leader_epoch=leader.view.leader_epoch,
            partition_epoch=leader.view.partition_epoch,
            isr=tuple(IsrMember(one, leader.epoch if one == node else leader.ends.get(one, (0, -1))[1]) for one in isr),
        )
        leader.pending = change
        self.proposals.append((node, leader.epoch, change))

    def may_join(self, leader: Replica, node: int) -> bool:
        end, _ = leader.ends.get(node, (-1, -1))
        return end >= max(leader.epoch_start, leader.high_watermark)

    def deliver(self, number: int) -> None:
        """A proposal arrives, perhaps late or again. An answer reaches its sender after the metadata before it."""
        node, epoch, change = self.proposals[number]
        try:
            plan = plan_isr_changes(self.image, node, epoch, [change], self.rules)
        except StrandlineError:
            return
        self.write(plan.records)
        (answer,) = plan.answer
        leader = self.brokers[node]
        if leader.pending is change and leader.epoch == epoch:
            if isinstance(answer, PartitionImage):
                self.learn(node)
            else:
                leader.pending = None

    def forget_pending(self, node: int) -> None:
        self.brokers[node].pending = None

    def assert_sound(self) -> None:
        """What holds of the image at any time."""
        found = self.partition
        assert set(found.isr) <= set(found.replicas)
        assert set(found.elr) <= set(found.replicas)
        assert not set(found.isr) & set(found.elr)
        assert found.leader == NO_LEADER or found.leader in found.isr
        assert not found.elr or len(found.isr) < self.enough
        assert len(found.last_known_elr) <= (0 if found.has_leader else 1)
        if not found.has_leader:
            assert not any(self.image.is_available(found, node) for node in found.isr or found.elr)
        for node in found.isr:
            assert self.image.is_available(found, node)
        for node in (*found.isr, *found.elr):
            if self.is_current(node) and not self.brokers[node].is_away and self.image.is_available(found, node):
                log = self.brokers[node].log
                assert log[: len(self.committed)] == self.committed, f"{node} lacks committed records"
