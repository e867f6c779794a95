"""Who leads: the order of preference, and elections on request."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from strandline.metadata import ElectionType, IsrChange, IsrMember, PartitionImage
from strandline.metadata.plans.elections import PartitionChange, elect, grouped, partition_change
from strandline.model import NO_LEADER, TopicPartition
from tests.metadata.cluster import Cluster, open_cluster

TOPIC_ID = uuid.UUID(int=1)
ONLINE, PREFERRED, UNCLEAN = ElectionType.ONLINE, ElectionType.PREFERRED, ElectionType.UNCLEAN


def partition(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int) -> PartitionImage:
    return PartitionImage(0, replicas, isr, leader, 5, 9)


def test_the_leader_stays_if_it_can() -> None:
    found = elect(partition((1, 2, 3), (1, 2, 3), 2), isr=(1, 2, 3), is_active={1, 2, 3}.__contains__)
    assert found == (2, False)


def test_then_the_first_replica_in_sync_and_alive_in_the_order_of_the_assignment() -> None:
    found = elect(partition((3, 1, 2), (2, 1, 3), 3), isr=(2, 1), is_active={1, 2}.__contains__)
    assert found == (1, False)


def test_the_preferred_one_takes_over_if_asked_for() -> None:
    current = partition((1, 2), (2, 1), 2)
    assert elect(current, isr=(2, 1), is_active={1, 2}.__contains__, election=PREFERRED) == (1, False)
    assert elect(current, isr=(2,), is_active={1, 2}.__contains__, election=PREFERRED) == (2, False)
    assert elect(current, isr=(2, 1), is_active={2}.__contains__, election=PREFERRED) == (2, False)


def test_outside_the_in_sync_set_only_uncleanly() -> None:
    current = partition((1, 2, 3), (1,), 1)
    assert elect(current, isr=(1,), is_active={2, 3}.__contains__) == (NO_LEADER, False)
    assert elect(current, isr=(1,), is_active={2, 3}.__contains__, election=UNCLEAN) == (2, True)
    assert elect(current, isr=(1,), is_active={1, 2}.__contains__, election=UNCLEAN) == (1, False)
    assert elect(current, isr=(1,), is_active=set[int]().__contains__, election=UNCLEAN) == (NO_LEADER, False)


nodes = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True).map(tuple)


@given(replicas=nodes, data=st.data(), alive=st.frozensets(st.integers(1, 5)), election=st.sampled_from(ElectionType))
def test_elections_never_break_the_rules(
    replicas: tuple[int, ...], data: st.DataObject, alive: frozenset[int], election: ElectionType
) -> None:
    isr = tuple(data.draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))
    before = partition(replicas, isr, data.draw(st.sampled_from([*isr, NO_LEADER])))
    target = tuple(node for node in isr if node in alive)
    change = partition_change(TOPIC_ID, before, isr=target, is_active=alive.__contains__, election=election)
    after = before if change is None else before.changed(change.isr, change.leader, change.leader_recovery_state)
    assert after.isr, "the in-sync set is never empty"
    assert set(after.isr) <= set(replicas)
    assert after.leader == NO_LEADER or (after.leader in after.isr and after.leader in alive)
    if after.has_leader and after.leader not in isr:
        assert election is UNCLEAN
        assert not set(isr) & alive
    if after.leader != before.leader:
        assert after.leader_epoch == before.leader_epoch + 1
    assert after.partition_epoch == before.partition_epoch + (change is not None)
    if set(isr) & alive:
        assert after.has_leader


changes = st.builds(
    PartitionChange,
    st.integers(1, 3).map(lambda n: uuid.UUID(int=n)),
    st.integers(0, 20),
    st.none() | nodes,
    st.none() | st.integers(-1, 3),
)


@given(st.lists(changes, unique_by=lambda change: (change.topic_id, change.partition)))
def test_grouping_keeps_every_change(wanted: list[PartitionChange]) -> None:
    records = grouped(wanted)
    found = [
        PartitionChange(
            topic_id,
            number,
            record.isr,
            record.leader,
            record.leader_recovery_state,
            record.replicas,
            record.elr,
            record.last_known_elr,
        )
        for record in records
        for topic_id, numbers in record.partitions
        for number in numbers
    ]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    kinds = {(r.isr, r.leader, r.leader_recovery_state, r.replicas, r.elr, r.last_known_elr) for r in records}
    assert len(kinds) == len(records)


def test_large_groups_are_split() -> None:
    records = grouped(PartitionChange(TOPIC_ID, number, leader=1) for number in range(12_000))
    assert [sum(len(numbers) for _, numbers in record.partitions) for record in records] == [5000, 5000, 2000]


async def let_2_lead(cluster: Cluster, name: str) -> None:
    """Broker 1, which is preferred, goes and comes back into the in-sync set."""
    await cluster.beat(1, want_fence=True)
    await cluster.beat(1)
    found = cluster.partition(name)
    change = IsrChange(
        topic_id=cluster.image.topics[name].topic_id,
        partition=0,
        leader_epoch=found.leader_epoch,
        partition_epoch=found.partition_epoch,
        isr=(IsrMember(1), IsrMember(2)),
    )
    await cluster.controller.alter_partition(2, cluster.image.brokers[2].epoch, [change])


async def test_preferred_leaders_are_elected_on_request() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        wanted, missing = TopicPartition("t", 0), TopicPartition("t", 1)
        answers = await cluster.controller.elect_leaders(PREFERRED, [wanted, missing, wanted])
        assert type(answers[wanted]) is ElectionNotNeeded
        assert type(answers[missing]) is UnknownTopicOrPartition
        await let_2_lead(cluster, "t")
        assert await cluster.controller.elect_leaders(PREFERRED, [wanted]) == {wanted: None}
        assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (1, 2)


async def test_an_election_for_all_answers_only_where_it_was_needed() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        await cluster.create("u", [[2, 1]])
        await let_2_lead(cluster, "t")
        assert await cluster.controller.elect_leaders(PREFERRED, None) == {TopicPartition("t", 0): None}
        assert await cluster.controller.elect_leaders(UNCLEAN, None) == {}


async def test_a_preferred_replica_that_cannot_lead_is_an_error() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        await cluster.beat(1, want_fence=True)
        before = cluster.image
        wanted = TopicPartition("t", 0)
        answers = await cluster.controller.elect_leaders(PREFERRED, [wanted])
        assert type(answers[wanted]) is PreferredLeaderNotAvailable
        assert type((await cluster.controller.elect_leaders(PREFERRED, None))[wanted]) is PreferredLeaderNotAvailable
        assert cluster.image is before


async def test_an_unclean_election_takes_any_replica_alive() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        wanted = TopicPartition("t", 0)
        assert type((await cluster.controller.elect_leaders(UNCLEAN, [wanted]))[wanted]) is ElectionNotNeeded
        await cluster.beat(2, want_fence=True)
        await cluster.beat(1, want_fence=True)
        assert type((await cluster.controller.elect_leaders(UNCLEAN, [wanted]))[wanted]) is EligibleLeadersNotAvailable
        await cluster.beat(2)
        assert (await cluster.controller.elect_leaders(UNCLEAN, [wanted])) == {wanted: None}
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


async def test_other_kinds_of_election_cannot_be_asked_for() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t")
        wanted = TopicPartition("t", 0)
        assert type((await cluster.controller.elect_leaders(ONLINE, [wanted]))[wanted]) is InvalidRequest
