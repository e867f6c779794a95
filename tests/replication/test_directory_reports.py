"""Where replicas are reaches the controller: once, together, and again until it is settled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from strandline.clock import SystemChance
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.errors import KafkaStorageError, NotController, NotLeaderOrFollower, RequestTimedOut, StrandlineError
from strandline.log import LogManager
from strandline.metadata import EMPTY_IMAGE, DirectoryAssignment, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.administered import Administered
from strandline.metadata.comparison import delta_between
from strandline.metadata.features import METADATA_VERSION, REPLICATED, UNREPLICATED
from strandline.model import TopicPartition
from strandline.replication import DirectoryReports, ReplicaManager
from strandline.replication.directory_reports import COLLECTING_SECONDS, MOST_PER_REQUEST
from strandline.testing.clock import VirtualClock
from tests.moments import T0

ME = 1
TOPIC_ID = UUID(int=77)


class Controller:
    """Answers as the test says, and else accepts."""

    def __init__(self) -> None:
        self.requests: list[list[DirectoryAssignment]] = []
        self.answers: list[StrandlineError | list[StrandlineError | None]] = []

    async def assign_directories(
        self, node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> list[StrandlineError | None]:
        assert (node_id, broker_epoch) == (ME, 5)
        self.requests.append([*assignments])
        accepted: list[StrandlineError | None] = [None] * len(assignments)
        answer = self.answers.pop(0) if self.answers else accepted
        if isinstance(answer, StrandlineError):
            raise answer
        return answer

    @property
    def asked(self) -> list[list[int]]:
        return [[one.partition for one in request] for request in self.requests]


class Node:
    """A broker with log directories, and the metadata that it has seen."""

    def __init__(self, root: Path, *directories: str) -> None:
        self.clock, self.image, self.controller = VirtualClock(T0), EMPTY_IMAGE, Controller()
        paths = tuple(str(root / name) for name in directories)
        self.logs = LogManager(LogSettings(log_dirs=paths), node_id=ME, clock=self.clock, chance=SystemChance(1))
        self.logs.load(lambda _: Settings().topic_config({}))
        self.replicas = ReplicaManager(
            ME, self.logs, loop=asyncio.get_running_loop(), topic_config=lambda _: Settings().topic_config({})
        )
        self.reports = DirectoryReports(
            self.controller,
            self,
            self.replicas,
            directory_of=lambda partition: self.logs.directory_id_of(partition.log),
            has_several=len(self.logs.directories) > 1,
            node_id=ME,
            broker_epoch=lambda: 5,
            clock=self.clock,
        )
        self.replicas.add_replica_listener(self.reports)

    def see(self, partitions: Iterable[PartitionImage], *, level: int = REPLICATED) -> None:
        topic = TopicImage("t", TOPIC_ID, tuple(partitions))
        image = MetadataImage(
            offset=self.image.offset + 1,
            topics={"t": topic},
            topics_by_id={TOPIC_ID: topic},
            administered=Administered(feature_levels={METADATA_VERSION: level}),
        )
        delta, self.image = delta_between(self.image, image), image
        self.replicas.apply(delta, image)
        self.reports.apply(delta, image)

    async def pass_time(self, seconds: float = COLLECTING_SECONDS) -> None:
        await self.clock.advance(seconds)

    def path_of(self, number: int) -> str:
        return self.replicas.find("t", number).log.env.directory.path

    async def close(self) -> None:
        await self.reports.close()
        self.replicas.close()
        self.logs.shutdown()


def led(count: int, *, epoch: int = 0, leader: int = ME) -> list[PartitionImage]:
    return [PartitionImage(number, (ME, 2), (ME, 2), leader, epoch, epoch) for number in range(count)]


def as_named(node: Node, partitions: Iterable[PartitionImage]) -> list[PartitionImage]:
    """As the metadata is after what was reported."""
    named = {one.partition: one.directory for request in node.controller.requests for one in request}
    return [one.in_directory(ME, named[one.partition]) if one.partition in named else one for one in partitions]


async def test_replicas_are_named_once_and_together(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    node.see(led(4))
    assert node.controller.requests == []
    await node.pass_time()
    assert node.controller.asked == [[0, 1, 2, 3]]
    ids = node.logs.directory_ids
    assert sorted(one.directory for one in node.controller.requests[0]) == sorted([*ids, *ids])
    node.see(as_named(node, led(4, epoch=1)))
    await node.pass_time(10)
    assert len(node.controller.requests) == 1, "the metadata has them"
    await node.close()


async def test_a_broker_with_one_directory_names_only_what_the_metadata_has_elsewhere(tmp_path: Path) -> None:
    node = Node(tmp_path, "a")
    moved, other = led(2)
    node.see([moved.in_directory(ME, UUID(int=4711)), other])
    await node.pass_time(10)
    assert node.controller.asked == [[0]]
    await node.close()


async def test_what_fails_is_sent_again_and_what_is_settled_is_not(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    node.controller.answers = [NotController("No."), [NotLeaderOrFollower("No."), RequestTimedOut("Hm."), None]]
    node.see(led(3))
    await node.pass_time()
    await node.pass_time()
    assert node.controller.asked == [[0, 1, 2]], "it waits longer after a failure"
    await node.pass_time()
    assert node.controller.asked == [[0, 1, 2]] * 2
    await node.pass_time(10)
    assert node.controller.asked[2:] == [[1]]
    await node.close()


async def test_what_is_not_true_any_more_is_not_sent(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    kept, other = led(2)
    node.see([kept, other])
    node.see([kept, other.changed(replicas=(2, 3), isr=(2,), leader=2)])
    await node.pass_time(10)
    assert node.controller.asked == [[0]]
    await node.close()


async def test_a_request_is_not_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.replication.directory_reports.MOST_PER_REQUEST", 2)
    assert MOST_PER_REQUEST == 2250
    node = Node(tmp_path, "a", "b")
    node.see(led(5))
    await node.pass_time(10)
    assert node.controller.asked == [[0, 1], [2, 3], [4]]
    await node.close()


async def test_they_are_named_when_the_level_of_the_metadata_allows_it(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    node.see(led(2), level=UNREPLICATED)
    await node.pass_time(10)
    assert node.controller.requests == []
    node.see(led(2))
    await node.pass_time()
    assert node.controller.asked == [[0, 1]]
    await node.close()


async def test_a_directory_that_fails_before_it_is_named_is_named_all_the_same(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    node.see(led(2))
    failed = node.path_of(1)
    next(one for one in node.logs.directories if one.path == failed).fail(OSError("a test broke the disk"))
    node.replicas.directory_failed(Path(failed))
    await node.pass_time()
    assert node.controller.asked == [[0, 1]]
    assert node.logs.failed_directory_ids == (node.controller.requests[0][1].directory,)
    with pytest.raises(KafkaStorageError):
        node.replicas.find("t", 1)
    await node.close()


async def test_what_may_be_in_a_directory_that_is_away_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / "b").touch()  # no directory
    node = Node(tmp_path, "a", "b")
    (here,) = node.logs.directory_ids
    old, elsewhere, in_a = led(3)
    node.see([old, elsewhere.in_directory(ME, UUID(int=4711)), in_a.in_directory(ME, here)])
    assert [partition.topic_partition.partition for partition in node.replicas.partitions()] == [2]
    for number in (0, 1):
        with pytest.raises(KafkaStorageError, match="may lie in a log directory that is offline"):
            node.replicas.find("t", number)
    later = replace_last(led(4, epoch=1), node.image)
    node.see(later)
    made = {partition.topic_partition.partition for partition in node.replicas.partitions()}
    assert made == {2, 3}, "the last one was given to this broker since it started"
    assert node.logs.get(TopicPartition("t", 1)) is None
    await node.close()


def replace_last(partitions: Sequence[PartitionImage], image: MetadataImage) -> list[PartitionImage]:
    """These, with the directories that the image has for all but the last."""
    known = image.topics["t"].partitions
    first = [one._replace(directories=known[one.partition].directories) for one in partitions[:-1]]
    return [*first, partitions[-1]]
