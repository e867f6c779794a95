"""A leader with followers whose time, brokers and controller are in the hands of a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemChance
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.log import AppendOrigin, LogManager
from strandline.metadata import BrokerImage, MetadataImage
from strandline.replication import Append, LeaderEnvironment, LeaderRole, Partition, ReplicaBrokers
from strandline.replication.leader_environment import IsrProposal
from strandline.testing.clock import VirtualClock
from tests.replication.conftest import CLOCK, NODE, TOPIC_ID, TP, batch, image
from tests.replication.manual_writer import ManualWriter
from tests.replication.test_roles import Answers

LAG = 30.0
ALL = (1, 2, 3)


def registered(epochs: Mapping[int, int], *, fenced: Sequence[int] = ()) -> MetadataImage:
    """Brokers with these epochs."""
    return MetadataImage(
        brokers={
            number: BrokerImage(
                node_id=number, epoch=epoch, incarnation_id=UUID(int=epoch), listeners=(), fenced=number in fenced
            )
            for number, epoch in epochs.items()
        }
    )


@dataclass
class KnownBrokers:
    """An `Images` that says what the test says."""

    image: MetadataImage


@dataclass
class Controller:
    """An `IsrChanges` that keeps what it gets."""

    proposals: list[IsrProposal] = field(default_factory=list)
    is_busy: bool = False

    def submit(self, proposal: IsrProposal) -> bool:
        if not self.is_busy:
            self.proposals.append(proposal)
        return not self.is_busy

    @property
    def asked(self) -> list[tuple[int, ...]]:
        """The in-sync sets that it was asked for."""
        return [tuple(member.node_id for member in one.change.isr) for one in self.proposals]


class Led:
    """A partition that broker 1 leads from the start, with replicas on 2 and 3, whose epochs are 20 and 30."""

    def __init__(self, directory: Path, *, isr: tuple[int, ...] = ALL, min_isr: int = 1) -> None:
        self.clock = VirtualClock(CLOCK.now_ms())
        self.logs = LogManager(
            LogSettings(log_dirs=(str(directory),)), node_id=NODE, clock=self.clock, chance=SystemChance(1)
        )
        config = Settings().topic_config({"min.insync.replicas": str(min_isr)})
        self.logs.load(lambda _: config)
        self.brokers = KnownBrokers(registered({1: 10, 2: 20, 3: 30}))
        self.controller = Controller()
        self.writer = ManualWriter()
        self.partition = Partition(
            TP,
            TOPIC_ID,
            self.logs.get_or_create(TP, TOPIC_ID, config),
            node_id=NODE,
            writer=self.writer,
            environment=LeaderEnvironment(ReplicaBrokers(self.brokers, lambda: 10), self.controller, LAG),
        )
        self.version = self.epoch = 0
        self.follow(isr=isr)

    def close(self) -> None:
        self.logs.shutdown()

    @property
    def role(self) -> LeaderRole:
        role = self.partition.role
        assert isinstance(role, LeaderRole)
        return role

    @property
    def end(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    def follow(
        self, *, isr: tuple[int, ...], leader: int = NODE, replicas: tuple[int, ...] = ALL, next_epoch: bool = False
    ) -> None:
        """The next state of the metadata."""
        self.version += 1
        self.epoch += next_epoch
        self.partition.follow(image(leader=leader, epoch=self.epoch, isr=isr, replicas=replicas, version=self.version))

    def append(self, count: int = 1) -> list[Answers]:
        told: list[Answers] = []
        for _ in range(count):
            answers: Answers = []
            appended = self.partition.append(
                Append(batch(b"x"), acks=-1, origin=AppendOrigin.CLIENT, done=answers.append)
            )
            told.append([None] if appended.is_done else answers)
        return told

    def fetch(self, broker: int, offset: int, *, epoch: int = -1, log_start: int = 0) -> None:
        """A follower fetches, with its epoch unless the test gives another one."""
        known = self.brokers.image.brokers[broker].epoch
        self.role.follower_fetched(broker, known if epoch == -1 else epoch, offset, log_start, self.end)

    def accept(self) -> None:
        """The controller applies the oldest proposal, and answers."""
        proposal = self.controller.proposals.pop(0)
        self.version += 1
        members = tuple(member.node_id for member in proposal.change.isr)
        proposal.answered(image(epoch=self.epoch, isr=members, replicas=ALL, version=self.version))
