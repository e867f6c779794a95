"""A replica changes its role: what waits, what is being written, and who may move the high watermark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.errors import KafkaStorageError, NotLeaderOrFollower, StrandlineError, UnknownTopicOrPartition
from strandline.log import AppendOrigin
from strandline.replication import Append, LeaderRole, Partition
from strandline.replication.follower import FollowerRole
from strandline.replication.leader import LARGE_APPEND
from tests.replication.conftest import NODE, TOPIC_ID, TP, Fixture, batch, image
from tests.replication.manual_writer import ManualWriter
from tests.replication.test_partition import Bell, values_in

BOTH = (1, 2)
ALL, LEADER = -1, 1
Answers = list[StrandlineError | None]


class Replica:
    """A partition whose large appends are written when the test says so. Each image is newer than the last one."""

    def __init__(self, fixture: Fixture, **config: str) -> None:
        self.writer = ManualWriter()
        log = fixture.logs.get_or_create(TP, TOPIC_ID, fixture.config(max_message_bytes="2000000", **config))
        self.partition = Partition(TP, TOPIC_ID, log, node_id=NODE, writer=self.writer)
        self._version = 0

    def follow(
        self, *, leader: int = NODE, epoch: int, replicas: tuple[int, ...] = (NODE,), isr: tuple[int, ...] = (NODE,)
    ) -> None:
        self._version += 1
        self.partition.follow(image(leader=leader, epoch=epoch, replicas=replicas, isr=isr, version=self._version))

    def append(self, value: bytes, *, size: int = 0, acks: int = ALL) -> Answers:
        answers: Answers = []
        records = batch(value, size=size)
        appended = self.partition.append(
            Append(records, acks=acks, origin=AppendOrigin.CLIENT, done=answers.append, is_borrowed=True)
        )
        return [None] if appended.is_done else answers

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark


@pytest.fixture
def replica(fixture: Fixture) -> Replica:
    return Replica(fixture)


def kinds(answers: Answers) -> list[type[StrandlineError] | None]:
    return [None if error is None else type(error) for error in answers]


def lost(replica: Replica) -> None:
    replica.follow(leader=2, epoch=1, replicas=BOTH, isr=BOTH)


def leaderless(replica: Replica) -> None:
    replica.follow(leader=-1, epoch=1, replicas=BOTH, isr=BOTH)


def removed(replica: Replica) -> None:
    replica.partition.close(UnknownTopicOrPartition("Gone."))


ENDS: dict[Callable[[Replica], None], type[StrandlineError]] = {
    lost: NotLeaderOrFollower,
    leaderless: NotLeaderOrFollower,
    removed: UnknownTopicOrPartition,
}
each_end = pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)


async def test_a_replica_has_a_role_for_each_leadership(replica: Replica) -> None:
    partition = replica.partition
    assert isinstance(partition.role, FollowerRole)
    replica.follow(epoch=0)
    first = partition.role
    assert isinstance(first, LeaderRole)
    replica.follow(epoch=0, replicas=(1, 2))
    assert partition.role is first, "the same leadership"
    replica.follow(epoch=1)
    second = partition.role
    assert isinstance(second, LeaderRole)
    assert second is not first
    assert (first.epoch, second.epoch) == (0, 1)
    replica.follow(leader=2, epoch=2, replicas=BOTH, isr=BOTH)
    assert isinstance(partition.role, FollowerRole)
    replica.follow(epoch=3)
    third = partition.role
    assert isinstance(third, LeaderRole)
    assert third.answers_at_once
    partition.close(NotLeaderOrFollower("Closed."))
    assert isinstance(partition.role, FollowerRole)


async def test_only_the_leader_with_the_only_replica_answers_at_once(replica: Replica) -> None:
    partition = replica.partition
    assert not partition.role.answers_at_once
    for replicas, isr, expected in (
        ((1,), (1,), True),
        ((1, 2), (1,), False),
        ((1, 2), (1, 2), False),
        ((1,), (1,), True),
    ):
        replica.follow(epoch=0, replicas=replicas, isr=isr)
        assert partition.role.answers_at_once is expected
    replica.follow(leader=-1, epoch=1)
    assert not partition.role.answers_at_once


@each_end
async def test_what_waits_for_replicas_is_refused_when_leadership_ends(
    replica: Replica, end: Callable[[Replica], None]
) -> None:
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    waiting = [replica.append(b"a"), replica.append(b"b")]
    bell = Bell()
    replica.partition.watch(bell)
    end(replica)
    assert [kinds(answers) for answers in waiting] == [[ENDS[end]]] * 2
    assert bell.rings == 1, "consumers have to look elsewhere"
    replica.follow(epoch=2)
    assert [len(answers) for answers in waiting] == [1, 1], "it leads again, and has answered them"


async def test_what_waits_goes_on_waiting_through_a_new_epoch_of_the_same_leader(replica: Replica) -> None:
    """As in Kafka: who stays leader keeps its log."""
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    before = replica.append(b"a")
    replica.follow(epoch=1, replicas=BOTH, isr=BOTH)
    behind = replica.append(b"b")
    assert (before, behind) == ([], [])
    replica.follow(epoch=2, replicas=(1, 2), isr=(1,))
    assert (before, behind) == ([None], [None])
    assert replica.high_watermark == 2


async def test_a_write_of_the_epoch_before_is_answered_by_the_same_leader(replica: Replica) -> None:
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    large = replica.append(b"a", size=LARGE_APPEND)
    at_once = replica.append(b"b", acks=LEADER)
    replica.follow(epoch=1, replicas=BOTH, isr=BOTH)
    replica.writer.write_next()
    replica.writer.write_next()
    assert (large, at_once) == ([], [None])
    replica.follow(epoch=1, replicas=(1, 2), isr=(1,))
    assert large == [None]
    assert values_in(replica.partition) == [b"a", b"b"]


@each_end
@pytest.mark.parametrize("acks", [ALL, LEADER])
async def test_a_write_that_ends_after_its_leadership_is_refused(
    replica: Replica, end: Callable[[Replica], None], acks: int
) -> None:
    """With acks=1, too: the leader that came after may not have it, and then it is cut off."""
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    late = replica.append(b"late", size=LARGE_APPEND, acks=acks)
    end(replica)
    assert late == [], "its buffer is in use until it is written"
    replica.writer.write_next()
    assert kinds(late) == [ENDS[end]]
    assert replica.high_watermark == 0


@pytest.mark.parametrize("acks", [ALL, LEADER])
async def test_a_write_of_an_earlier_leadership_answers_nothing_in_the_next_one(replica: Replica, acks: int) -> None:
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    late = replica.append(b"late", size=LARGE_APPEND, acks=acks)
    replica.follow(leader=2, epoch=1, replicas=BOTH, isr=BOTH)
    replica.follow(epoch=2, replicas=BOTH, isr=BOTH)
    new = replica.append(b"new")
    bell = Bell()
    replica.partition.watch_growth(bell)
    replica.writer.write_next()
    assert kinds(late) == [NotLeaderOrFollower]
    assert (new, replica.high_watermark) == ([], 0), "the follower of the new leadership is not known to have it"
    assert bell.rings == 1, "it is in the log for all that"
    replica.writer.write_next()
    replica.follow(epoch=2, replicas=(1, 2), isr=(1,))
    assert (new, len(late)) == ([None], 1)


async def test_a_broker_with_the_only_replica_keeps_its_promise_without_leadership(replica: Replica) -> None:
    """So a broker that stops answers what it has appended."""
    replica.follow(epoch=0)
    late = [replica.append(b"a", size=LARGE_APPEND), replica.append(b"b"), replica.append(b"c", acks=LEADER)]
    replica.follow(leader=-1, epoch=1)
    assert late == [[], [], []]
    while replica.writer.submitted:
        replica.writer.write_next()
    assert late == [[None], [None], [None]]
    replica.follow(epoch=2)
    assert replica.high_watermark == 3


async def test_a_write_that_fails_after_its_leadership_is_reported_as_that(replica: Replica) -> None:
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    late = replica.append(b"late", size=LARGE_APPEND)
    waiting = replica.append(b"behind")
    replica.follow(leader=2, epoch=1, replicas=BOTH, isr=BOTH)
    _, written = replica.writer.submitted.popleft()
    written(OSError("a test broke the disk"))
    assert kinds(late) == [NotLeaderOrFollower]
    _, written = replica.writer.submitted.popleft()
    written(None)
    assert kinds(waiting) == [NotLeaderOrFollower]


async def test_a_write_that_fails_takes_the_log_offline(replica: Replica) -> None:
    replica.follow(epoch=0)
    failed, behind = replica.append(b"a", size=LARGE_APPEND), replica.append(b"b")
    _, written = replica.writer.submitted.popleft()
    written(OSError("a test broke the disk"))
    _, written = replica.writer.submitted.popleft()
    written(None)
    assert kinds(failed) == kinds(behind) == [KafkaStorageError]


async def test_a_seal_outlives_the_leadership_in_which_it_was_set(replica: Replica) -> None:
    """It guards the boundary of the log, and that is the same for the next leader."""
    replica.follow(epoch=0)
    replica.partition.restrict().seal(UnknownTopicOrPartition("Sealed."))
    replica.follow(epoch=1)
    with pytest.raises(UnknownTopicOrPartition):
        replica.append(b"a")
    replica.follow(leader=-1, epoch=2)
    replica.follow(epoch=3)
    with pytest.raises(UnknownTopicOrPartition):
        replica.append(b"a")


async def test_one_move_of_the_high_watermark_answers_all_that_wait(replica: Replica) -> None:
    replica.follow(epoch=0, replicas=BOTH, isr=BOTH)
    order: list[int] = []

    def append(number: int) -> None:
        records = batch(b"%d" % number)
        replica.partition.append(
            Append(records, acks=ALL, origin=AppendOrigin.CLIENT, done=lambda _: order.append(number))
        )

    for number in range(5):
        append(number)
    assert order == []
    replica.follow(epoch=0, replicas=(1, 2), isr=(1,))
    assert order == list(range(5))
