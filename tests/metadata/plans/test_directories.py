"""Log directories of replicas: one that fails or is away takes its replicas with it, and no other ones."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from strandline.errors import (
    IneligibleReplica,
    InvalidRequest,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.metadata import (
    UNASSIGNED,
    BrokerHeartbeat,
    DirectoryAssignment,
    ElectionType,
    HeartbeatReply,
    IsrChange,
    IsrMember,
)
from strandline.metadata.log.snapshot import decode_image, encode_image
from strandline.model import NO_LEADER, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster, registration

BROKERS = (1, 2, 3)
SESSION = 9.0
MIN_ISR_2: Mapping[str, str] = {"min.insync.replicas": "2"}


def disk(node_id: int, number: int) -> uuid.UUID:
    return uuid.UUID(int=1000 * node_id + number)


@asynccontextmanager
async def two_disks(disks: Sequence[int] = (1, 2)) -> AsyncIterator[Cluster]:
    """Three brokers with two log directories each."""
    async with open_cluster(brokers=()) as cluster:
        for node_id in BROKERS:
            await come(cluster, node_id, disks=disks, kept=-1)
        yield cluster


async def come(
    cluster: Cluster, node_id: int, *, disks: Sequence[int] = (1, 2), kept: int | None = None, beats: bool = True
) -> None:
    """A broker starts. `kept`: the epoch that it says it had; None: the last one."""
    known = cluster.image.brokers.get(node_id)
    incarnation = 1 if known is None else known.incarnation_id.int % (1 << 32) + 1
    last = -1 if known is None else known.epoch
    pass_sessions(cluster)
    wish = replace(
        registration(node_id, incarnation),
        log_dirs=tuple(disk(node_id, number) for number in disks),
        previous_broker_epoch=last if kept is None else kept,
    )
    await cluster.controller.register_broker(wish)
    if beats:
        await cluster.beat(node_id)


async def assign(cluster: Cluster, node_id: int, places: Mapping[int, int], topic: str = "t") -> list[object]:
    """The broker says in which of its directories it has these partitions."""
    topic_id = cluster.image.topics[topic].topic_id
    wishes = [DirectoryAssignment(topic_id, number, disk(node_id, place)) for number, place in places.items()]
    return [*await cluster.controller.assign_directories(node_id, cluster.image.brokers[node_id].epoch, wishes)]


async def fail(cluster: Cluster, node_id: int, *disks: int) -> HeartbeatReply:
    """A heartbeat that names directories which have failed."""
    heartbeat = BrokerHeartbeat(
        node_id=node_id,
        broker_epoch=cluster.image.brokers[node_id].epoch,
        current_metadata_offset=cluster.image.offset,
        failed_log_dirs=tuple(disk(node_id, number) for number in disks),
    )
    return await cluster.controller.broker_heartbeat(heartbeat)


async def join(cluster: Cluster, number: int, *nodes: int) -> object:
    """The leader asks for this in-sync set."""
    found, topic = cluster.partition("t", number), cluster.image.topics["t"]
    change = IsrChange(
        topic_id=topic.topic_id,
        partition=number,
        leader_epoch=found.leader_epoch,
        partition_epoch=found.partition_epoch,
        isr=tuple(map(IsrMember, nodes)),
    )
    (answer,) = await cluster.controller.alter_partition(
        found.leader, cluster.image.brokers[found.leader].epoch, [change]
    )
    return answer


def state(cluster: Cluster, number: int = 0) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    found = cluster.partition("t", number)
    return found.leader, found.leader_epoch, found.isr, found.elr


def pass_sessions(cluster: Cluster) -> None:
    assert isinstance(cluster.clock, VirtualClock)
    cluster.clock.move(SESSION + 0.1)


async def test_naming_directories_changes_no_epoch_and_lasts() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3], [2, 3, 1]])
        before = [cluster.partition("t", number) for number in (0, 1)]
        assert await assign(cluster, 1, {0: 1, 1: 2}) == [None, None]
        assert await assign(cluster, 2, {0: 2}) == [None]
        after = [cluster.partition("t", number) for number in (0, 1)]
        assert [one.directories for one in after] == [
            (disk(1, 1), disk(2, 2), UNASSIGNED),
            (UNASSIGNED, UNASSIGNED, disk(1, 2)),
        ]
        assert [one._replace(directories=()) for one in after] == before
        image = cluster.image
        assert await assign(cluster, 1, {0: 1, 1: 2}) == [None, None]
        assert cluster.image is image, "it holds already"
        assert decode_image(encode_image(image)).topics == image.topics
        await cluster.loader.load()
        assert cluster.image.topics == image.topics


async def test_a_directory_that_fails_moves_its_leaders_only() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3], [1, 2, 3], [2, 1, 3], [2, 1, 3]])
        await assign(cluster, 1, {0: 1, 1: 2, 2: 1, 3: 2})
        reply = await fail(cluster, 1, 2)
        assert not reply.is_fenced
        assert [state(cluster, number) for number in range(4)] == [
            (1, 0, (1, 2, 3), ()),
            (2, 1, (2, 3), ()),
            (2, 0, (2, 1, 3), ()),
            (2, 0, (2, 3), ()),
        ]
        assert cluster.image.brokers[1].failed_log_dirs == (disk(1, 2),)
        image = cluster.image
        await fail(cluster, 1, 2)
        assert cluster.image is image, "it is known"
        assert decode_image(encode_image(image)).brokers == image.brokers
        assert isinstance(await join(cluster, 1, 2, 3, 1), IneligibleReplica)
        await fail(cluster, 1, 2, 1)
        assert [state(cluster, number)[0] for number in range(4)] == [2, 2, 2, 2]


async def test_a_replica_that_is_named_after_its_directory_has_failed_leads_no_longer() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3], [1, 2, 3]])
        await fail(cluster, 1, 2)
        assert [state(cluster, number)[0] for number in (0, 1)] == [1, 1], "where they are is not known"
        await assign(cluster, 1, {0: 1, 1: 2})
        assert [state(cluster, number)[0] for number in (0, 1)] == [1, 2]


async def test_the_only_replica_has_no_leader_until_its_directory_is_back() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1], [1]])
        await assign(cluster, 1, {0: 1, 1: 2})
        await fail(cluster, 1, 2)
        assert (state(cluster, 0), state(cluster, 1)) == ((1, 0, (1,), ()), (NO_LEADER, 1, (1,), ()))
        for election in (ElectionType.UNCLEAN, ElectionType.PREFERRED):
            answers = await cluster.controller.elect_leaders(election, [TopicPartition("t", 1)])
            assert isinstance(answers[TopicPartition("t", 1)], StrandlineError)
        await cluster.controller.upkeep.step()
        assert state(cluster, 1)[0] == NO_LEADER
        await come(cluster, 1)
        assert (state(cluster, 0)[0], state(cluster, 1)[0]) == (1, 1)


async def test_an_eligible_replica_leads_when_its_directory_is_back_and_not_before() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3]], MIN_ISR_2)
        await assign(cluster, 1, {0: 2})
        for node_id in (3, 2):
            await cluster.beat(node_id, want_fence=True)
        assert state(cluster) == (1, 0, (1,), (2,))
        await fail(cluster, 1, 2)
        assert state(cluster) == (NO_LEADER, 1, (), (1, 2))
        await come(cluster, 1, disks=(1,))
        assert state(cluster)[:3] == (NO_LEADER, 1, ())
        await cluster.beat(2)
        assert state(cluster)[:3] == (2, 2, (2,))


async def test_a_start_without_a_directory_takes_only_what_is_in_it() -> None:
    """Of the others the broker has kept everything: it stays eligible."""
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3], [1, 2, 3]], MIN_ISR_2)
        await assign(cluster, 1, {0: 1, 1: 2})
        for node_id in (3, 2, 1):
            await cluster.beat(node_id, want_fence=True)
        assert [state(cluster, number)[3] for number in (0, 1)] == [(1, 2), (1, 2)]
        await come(cluster, 1, disks=(1,))
        assert (state(cluster, 0)[0], state(cluster, 1)[0]) == (1, NO_LEADER)


async def test_a_log_that_was_made_anew_may_not_lead_for_the_one_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3]], MIN_ISR_2)
        await assign(cluster, 1, {0: 2})
        for node_id in (3, 2, 1):
            await cluster.beat(node_id, want_fence=True)
        await come(cluster, 2, kept=-1)
        assert (state(cluster)[0], state(cluster)[2:]) == (NO_LEADER, ((), (1,)))
        with caplog.at_level(logging.ERROR):
            await come(cluster, 1, disks=(1, 3))  # the disk was replaced
            assert state(cluster)[0] == NO_LEADER
            assert not caplog.records
            await assign(cluster, 1, {0: 3})
        assert (state(cluster)[0], state(cluster)[2:]) == (NO_LEADER, ((), ()))
        assert cluster.partition("t").last_known_elr == ()
        assert "Broker 1 has started without the log that it had" in caplog.text


async def test_the_only_replica_begins_again_on_a_disk_that_was_replaced() -> None:
    """As in Kafka, and as with a broker whose only disk was replaced: nobody else has anything."""
    async with two_disks() as cluster:
        await cluster.create("t", [[1]])
        await assign(cluster, 1, {0: 2})
        await come(cluster, 1, disks=(1, 3))
        assert state(cluster)[0] == NO_LEADER
        await assign(cluster, 1, {0: 3})
        assert state(cluster)[0] == 1


async def test_what_was_in_a_directory_that_failed_is_not_complete_when_it_is_back() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3], [1, 2, 3]], MIN_ISR_2)
        await assign(cluster, 1, {0: 1, 1: 2})
        for node_id in (3, 2):
            await cluster.beat(node_id, want_fence=True)
        await fail(cluster, 1, 2)
        await cluster.beat(1, want_fence=True)
        assert [state(cluster, number)[3] for number in (0, 1)] == [(1, 2), (1, 2)]
        await come(cluster, 1, beats=False)
        assert [state(cluster, number)[3] for number in (0, 1)] == [(1, 2), (2,)]


async def test_replicas_whose_directory_is_not_known_are_lost_with_any_of_them() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[1, 2, 3]], MIN_ISR_2)
        for node_id in (3, 2, 1):
            await cluster.beat(node_id, want_fence=True)
        await come(cluster, 1, disks=(1,))
        assert (state(cluster)[0], state(cluster)[2:]) == (NO_LEADER, ((), (2,)))


async def test_directories_follow_their_replicas_when_there_are_more() -> None:
    async with two_disks() as cluster:
        await cluster.create("t", [[2, 1]])
        await assign(cluster, 1, {0: 2})
        partition = cluster.partition("t")
        assert partition.changed(replicas=(1, 3)).directories == (disk(1, 2), UNASSIGNED)
        assert partition.changed(replicas=(2, 3)).directories == ()


async def test_bad_assignments() -> None:
    async with two_disks() as cluster:
        topic = await cluster.create("t", [[1, 2]])
        known, epoch = topic.topic_id, cluster.image.brokers[3].epoch
        wishes = [
            DirectoryAssignment(uuid.UUID(int=4711), 0, disk(3, 1)),
            DirectoryAssignment(known, 1, disk(3, 1)),
            DirectoryAssignment(known, 0, disk(3, 1)),
        ]
        image = cluster.image
        answers = await cluster.controller.assign_directories(3, epoch, wishes)
        assert [type(one) for one in answers] == [UnknownTopicId, UnknownTopicOrPartition, NotLeaderOrFollower]
        reserved = [DirectoryAssignment(known, 0, UNASSIGNED)]
        (answer,) = await cluster.controller.assign_directories(1, cluster.image.brokers[1].epoch, reserved)
        assert isinstance(answer, InvalidRequest)
        for node_id in (3, 4711):
            with pytest.raises(StaleBrokerEpoch):
                await cluster.controller.assign_directories(node_id, epoch + 1, wishes)
        assert cluster.image is image
