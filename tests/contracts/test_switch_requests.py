"""Settings and requests of the switch to diskless change together or not at all, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from strandline.controlplane import SqlControlPlane
from strandline.controlplane.values import MigrationState, NewBoundary, PrefixProgress
from strandline.errors import InvalidConfig, InvalidRequest
from strandline.metadata import TopicImage
from strandline.metadata.effects import DISKLESS_FLAG
from strandline.model import TopicIdPartition, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster
from tests.metadata.switching import ALL_BROKERS, ask, requested, set_to

ON, OFF = {DISKLESS_FLAG: "true"}, {DISKLESS_FLAG: "false"}
TIERED = {"remote.storage.enable": "true"}
UNCLEAN = {"unclean.leader.election.enable": "true"}


@pytest_asyncio.fixture
async def cluster(database_url: str) -> AsyncIterator[Cluster]:
    async with open_cluster(database_url, properties={"remote.log.storage.system.enable": "true"}) as opened:
        yield opened


async def set_boundary(cluster: Cluster, topic: TopicImage, partition: int, boundary: int = 10) -> TopicIdPartition:
    """What the leader of a partition does."""
    plane = SqlControlPlane(cluster.sql, clock=VirtualClock())
    (row,) = [one for one in await plane.migrations.topic_migrations() if one.topic_id == topic.topic_id]
    key = TopicIdPartition(topic.topic_id, TopicPartition(topic.name, partition))
    new = NewBoundary(
        partition=key, position=row.position, boundary=boundary, leader_epoch=0, log_start_offset=0, producers=()
    )
    (answer,) = await plane.migrations.initialize_diskless_migration([new])
    assert answer.refusal is None
    return key


async def finish(cluster: Cluster, keys: list[TopicIdPartition]) -> None:
    """What the leaders do when everything is copied."""
    plane = SqlControlPlane(cluster.sql, clock=VirtualClock())
    await plane.migrations.record_prefix(
        [
            PrefixProgress(
                partition=key,
                leader_epoch=0,
                log_start_offset=0,
                tiered_log_start_offset=0,
                tiered_high_offset=9,
                state=MigrationState.HYBRID,
            )
            for key in keys
        ]
    )


async def test_the_setting_and_the_request_are_written_together_in_the_order_of_the_requests(cluster: Cluster) -> None:
    topics = [await cluster.create(f"t{number}", [(1,), (1,)], TIERED) for number in range(7)]
    for topic in reversed(topics):
        assert await ask(cluster, set_to(topic.name, {**ON})) is None
    plane = SqlControlPlane(cluster.sql, clock=VirtualClock())
    rows = await plane.migrations.topic_migrations()
    assert [(row.topic, row.topic_id, row.partitions) for row in rows] == [
        (topic.name, topic.topic_id, 2) for topic in reversed(topics)
    ]
    image = await cluster.store.load()
    assert all(image.topic_overrides(topic.name) == {**TIERED, **ON} for topic in topics)


async def test_what_was_only_validated_is_not_there(cluster: Cluster) -> None:
    await cluster.create("t", configs=TIERED)
    offset = cluster.image.offset
    assert await ask(cluster, set_to("t", {**ON}), validate_only=True) is None
    assert await requested(cluster) == []
    await ask(cluster, set_to("t", {**ON}))
    assert await ask(cluster, set_to("t", {**OFF}), validate_only=True) is None
    assert len(await requested(cluster)) == 1
    assert (await cluster.store.load()).offset == offset + 1


async def test_a_deposed_controller_requests_nothing(cluster: Cluster) -> None:
    await cluster.create("t", configs=TIERED)
    assert await cluster.store.take_lease(9, may_take=lambda _: True, duration_ms=None) is not None
    answer = await ask(cluster, set_to("t", {**ON}))
    assert type(answer).__name__ == "NotController"
    assert await requested(cluster) == []


async def test_back_to_false_removes_the_request_and_the_topic_is_as_it_was(cluster: Cluster) -> None:
    await cluster.create("t", configs=TIERED)
    await ask(cluster, set_to("t", {**ON}))
    assert await ask(cluster, set_to("t", {DISKLESS_FLAG: None})) is None
    assert await requested(cluster) == []
    assert (await cluster.store.load()).topic_overrides("t") == TIERED


async def test_back_to_false_is_refused_from_the_first_boundary_on_and_names_the_partition(cluster: Cluster) -> None:
    topic = await cluster.create("t", [(1,), (1,), (1,)], TIERED)
    await ask(cluster, set_to("t", {**ON}))
    await set_boundary(cluster, topic, 1)
    for validate_only in (True, False):
        answer = await ask(cluster, set_to("t", {**OFF}), validate_only=validate_only)
        assert isinstance(answer, InvalidConfig)
        assert str(answer).startswith("diskless.enable of t cannot become false: partition 1 is diskless already")
    assert await requested(cluster) == [topic.topic_id]
    assert (await cluster.store.load()).topic_overrides("t") == {**TIERED, **ON}


async def test_an_abort_and_a_boundary_at_the_same_time_have_one_winner(cluster: Cluster) -> None:
    topic = await cluster.create("t", configs=TIERED)
    await ask(cluster, set_to("t", {**ON}))
    plane = SqlControlPlane(cluster.sql, clock=VirtualClock())
    (row,) = await plane.migrations.topic_migrations()
    key = TopicIdPartition(topic.topic_id, TopicPartition("t", 0))
    new = NewBoundary(
        partition=key, position=row.position, boundary=5, leader_epoch=0, log_start_offset=0, producers=()
    )
    answer, (set_,) = await asyncio.gather(
        ask(cluster, set_to("t", {**OFF})), plane.migrations.initialize_diskless_migration([new])
    )
    is_aborted = answer is None
    assert is_aborted == (set_.refusal is not None)
    assert ((await cluster.store.load()).topic_overrides("t") == {**TIERED, **OFF}) == is_aborted
    assert (await plane.migrations.migration_states([topic.topic_id]) == {}) == is_aborted


async def test_unclean_election_can_be_switched_on_when_the_switch_is_finished(cluster: Cluster) -> None:
    topic = await cluster.create("t", configs=TIERED)
    await ask(cluster, set_to("t", {**ON}))
    key = await set_boundary(cluster, topic, 0)
    assert isinstance(await ask(cluster, set_to("t", {**UNCLEAN})), InvalidConfig)
    assert isinstance(await ask(cluster, set_to(ALL_BROKERS, {**UNCLEAN})), InvalidRequest)
    await finish(cluster, [key])
    assert await requested(cluster) == []
    assert await ask(cluster, set_to("t", {**UNCLEAN})) is None
    assert await ask(cluster, set_to(ALL_BROKERS, {**UNCLEAN})) is None


async def test_true_on_a_topic_that_is_diskless_asks_for_nothing_unless_a_boundary_was_reset(cluster: Cluster) -> None:
    topic = await cluster.create("t", configs=TIERED)
    await ask(cluster, set_to("t", {**ON}))
    key = await set_boundary(cluster, topic, 0)
    await finish(cluster, [key])
    assert await ask(cluster, set_to("t", {**ON})) is None
    assert await requested(cluster) == []
    plane = SqlControlPlane(cluster.sql, clock=VirtualClock())
    assert (await plane.migrations.reset_diskless_log_start_offset(key, 0)).refusal is None
    assert await ask(cluster, set_to("t", {**ON})) is None
    assert await requested(cluster) == [topic.topic_id]
