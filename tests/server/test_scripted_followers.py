"""A leader and its followers over the wire: what it tells them, what it learns from them, and who is in sync."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.server.handlers.fetch.poll import FetchPoll
from strandline.server.handlers.fetch.sharing import SharedAnswers
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.server.scripted_followers import FETCH, FINAL_EPOCH, LONG_MS, Cluster, opened_cluster
from tests.waiting import until

LATEST = -1


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with opened_cluster(tmp_path / "data") as opened:
        yield opened


async def test_a_record_counts_when_every_follower_in_sync_has_come_back_for_the_next_one(cluster: Cluster) -> None:
    await cluster.begin()
    second, third = await cluster.follower(2), await cluster.follower(3)
    cluster.send()
    await until(lambda: cluster.partition.log.log_end_offset == 1)
    for follower in (second, third):
        answer = await follower.fetch(0)
        assert answer is not None
        assert (answer.error_code, answer.high_watermark) == (0, 0)
        assert answer.records > 0
    assert cluster.high_watermark == 0, "they may not have written it yet"
    await second.fetch(1)
    assert cluster.high_watermark == 0
    answer = await third.fetch(1)
    assert answer is not None
    assert answer.high_watermark == 1, "the newest one"
    assert await cluster.producer.produced() == (0, 0)


async def test_a_follower_that_waits_is_answered_by_an_append(cluster: Cluster) -> None:
    await cluster.begin()
    second, third = await cluster.follower(2), await cluster.follower(3)
    await second.fetch(0)
    await third.fetch(0)
    second.ask(wait_ms=LONG_MS)
    third.ask(wait_ms=LONG_MS)
    await cluster.waits(2)
    cluster.send()
    for follower in (second, third):
        (answer,) = (await follower.told()).values()
        assert answer.records > 0
    second.ask(1, wait_ms=LONG_MS)
    await cluster.waits(1)
    third.ask(1, wait_ms=LONG_MS)
    assert await cluster.producer.produced() == (0, 0)
    await cluster.waits(2)
    assert cluster.high_watermark == 1, "and that alone ends no wait"
    cluster.send()
    (answer,) = (await second.told()).values()
    assert (answer.high_watermark, answer.records > 0) == (1, True)


async def test_a_follower_without_a_session_is_answered_by_an_append(cluster: Cluster) -> None:
    """Its place lasts as long as its request: the request itself hears of the append."""
    await cluster.begin()
    follower = await cluster.follower(2)
    follower._session_epoch = FINAL_EPOCH
    follower.ask(0, wait_ms=LONG_MS)
    await cluster.waits(1)
    await cluster.write()
    answer = (await follower.told())[0]
    assert (answer.records > 0, answer.high_watermark, len(cluster.broker.sessions)) == (True, 0, 0)
    assert not cluster.partition.is_watched


@pytest.mark.plain
async def test_a_consumer_at_the_end_is_woken_once_for_each_record(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the followers have it. At the append there is nothing for it to see."""
    looks: list[FetchPoll] = []

    def look(poll: FetchPoll, shared: SharedAnswers) -> None:
        if poll._request.replica_id < 0:
            looks.append(poll)
        original(poll, shared)

    original = FetchPoll.look
    monkeypatch.setattr(FetchPoll, "look", look)
    await cluster.begin(isr=(1, 2))
    follower, consumer = await cluster.follower(2), await cluster.connect()
    await follower.fetch(0)
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic_id=cluster.topic_id, partitions=[place])]
    request = FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, max_bytes=1 << 20, topics=topics)
    consumer.send(ApiKey.FETCH, FETCH, request)
    await cluster.waits(1)
    follower.ask(wait_ms=LONG_MS)
    await cluster.waits(2)
    await cluster.write()
    assert (await follower.told())[0].records > 0
    assert (cluster.high_watermark, len(looks)) == (0, 0)
    follower.ask(1, wait_ms=LONG_MS)
    response = await consumer.receive(ApiKey.FETCH, FETCH)
    assert [len(row.records) > 0 for topic in response.responses for row in topic.partitions] == [True]
    assert (cluster.high_watermark, len(looks)) == (1, 1)


async def test_a_high_watermark_that_has_moved_is_told_at_the_end_of_the_wait(cluster: Cluster) -> None:
    await cluster.begin()
    second, third = await cluster.follower(2), await cluster.follower(3)
    await cluster.write(2)
    await second.fetch(2)
    second.ask(wait_ms=50)
    await third.fetch(2)
    assert cluster.high_watermark == 2
    (answer,) = (await second.told()).values()
    assert (answer.high_watermark, answer.records) == (2, 0)


async def test_followers_join_when_they_have_what_is_committed(cluster: Cluster) -> None:
    await cluster.begin(isr=(1,))
    second, third = await cluster.follower(2), await cluster.follower(3)
    await cluster.write(3)
    assert cluster.high_watermark == 3
    await second.fetch(2)
    assert cluster.partition.isr == (1,)
    await second.fetch(3)
    await cluster.in_sync(1, 2)
    await third.fetch(3)
    await cluster.in_sync(1, 2, 3)


async def test_a_follower_that_was_fenced_joins_again(cluster: Cluster) -> None:
    """Also if it rests: it has everything, and waits."""
    await cluster.begin()
    second = await cluster.follower(2)
    await second.fetch(0)
    for _ in range(2):
        await second.fetch(wait_ms=1)
    await cluster.register(2)
    await cluster.in_sync(1, 3)
    again = await cluster.follower(2)
    await again.fetch(0)
    await cluster.in_sync(1, 2, 3)


async def test_t5_an_earlier_incarnation_moves_nothing(cluster: Cluster) -> None:
    await cluster.begin(isr=(1, 2))
    old = await cluster.follower(2)
    await cluster.write()
    await cluster.register(2)
    answer = await old.fetch(1)
    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.partition.isr == (1,)
    await cluster.write()
    await old.fetch(2)
    assert cluster.partition.isr == (1,)


async def test_t5_whoever_names_a_broker_and_not_its_epoch_moves_nothing(cluster: Cluster) -> None:
    await cluster.begin(isr=(1, 2))
    await cluster.write()
    for epoch in (-1, cluster.epochs[2] + 1000):
        liar = await cluster.follower(2)
        liar.broker_epoch = epoch
        answer = await liar.fetch(1)
        assert answer is not None
        assert answer.error_code == 0
        assert cluster.high_watermark == 0


async def test_what_a_follower_may_not_ask_for_is_refused_and_changes_nothing(cluster: Cluster) -> None:
    await cluster.begin(isr=(1, 2))
    await cluster.write()
    beyond = await (await cluster.follower(2)).fetch(2)
    assert beyond is not None
    assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    stranger = await cluster.follower(2)
    stranger.broker_id = 7
    without_epoch = await stranger.fetch(1)
    assert without_epoch is not None
    assert without_epoch.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    epoch = cluster.partition.leader_epoch
    for asked, expected in (
        (epoch, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        if asked >= 0:
            answer = await stranger.fetch(1, leader_epoch=asked)
            assert answer is not None
            assert answer.error_code == expected
    assert cluster.high_watermark == 0


async def test_logs_that_diverge_are_told_where_and_count_for_nothing(cluster: Cluster) -> None:
    await cluster.begin(isr=(1, 2))
    await cluster.write(2)
    await cluster.lead_again()
    await cluster.write()
    second = await cluster.follower(2)
    second.ask(3, last_epoch=0, leader_epoch=1)
    (answer,) = (await second.told()).values()
    assert (answer.error_code, answer.diverging, answer.records) == (0, (0, 2), 0)
    assert cluster.high_watermark == 0


async def test_acks_all_with_too_few_in_sync_is_refused(cluster: Cluster) -> None:
    await cluster.begin(isr=(1,), min_isr=2)
    cluster.send()
    assert (await cluster.producer.produced())[0] == ErrorCode.NOT_ENOUGH_REPLICAS
    second = await cluster.follower(2)
    await second.fetch(0)
    await cluster.in_sync(1, 2)
    cluster.send()
    await until(lambda: cluster.partition.log.log_end_offset == 1)
    await second.fetch(1)
    assert await cluster.producer.produced() == (0, 0)


async def test_a_new_leader_does_not_say_where_the_log_ends_before_it_knows(cluster: Cluster) -> None:
    """KIP-207."""
    await cluster.begin(isr=(1, 2))
    await cluster.write(2)
    await cluster.lead_again()
    client = await cluster.connect()

    async def latest(version: int, *, replica_id: int = -1) -> tuple[int, int]:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=replica_id, topics=[ListOffsetsTopic(name="topic", partitions=[wanted])]
        )
        row = (await client.call(ApiKey.LIST_OFFSETS, version, request)).topics[0].partitions[0]
        return row.error_code, row.offset

    assert (await latest(7))[0] == ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await latest(4))[0] == ErrorCode.LEADER_NOT_AVAILABLE
    assert await latest(7, replica_id=2) == (0, 2)
    await (await cluster.follower(2)).fetch(2)
    assert await latest(7) == (0, 2)


async def test_records_are_deleted_when_no_replica_has_them(cluster: Cluster) -> None:
    await cluster.begin(isr=(1, 2))
    second, third = await cluster.follower(2), await cluster.follower(3)
    await cluster.write(3)
    await second.fetch(3)
    assert cluster.high_watermark == 3
    await third.fetch(0)
    client = await cluster.connect()

    def delete(before: int, timeout_ms: int) -> None:
        wanted = DeleteRecordsTopic(name="topic", partitions=[DeleteRecordsPartition(partition_index=0, offset=before)])
        client.send(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[wanted], timeout_ms=timeout_ms))

    async def deleted() -> tuple[int, int]:
        row = (await client.receive(ApiKey.DELETE_RECORDS, 2)).topics[0].partitions[0]
        return row.error_code, row.low_watermark

    delete(1, 10)
    assert (await deleted())[0] == ErrorCode.REQUEST_TIMED_OUT
    delete(2, LONG_MS)
    await until(lambda: cluster.partition.log.log_start_offset == 2)
    await second.fetch(3, log_start=2)
    await third.fetch(2, log_start=2)
    assert await deleted() == (0, 2)


async def test_idle_followers_of_many_partitions_are_not_looked_at(cluster: Cluster) -> None:
    """They stay in sync for all that, and the leader knows when they have had everything."""
    count = 20
    await cluster.begin(partitions=count)
    followers = [await cluster.follower(2), await cluster.follower(3)]
    for follower in followers:
        follower.ask(*[0] * count)
        assert len(await follower.told()) == count
        for _ in range(2):
            follower.ask(wait_ms=1)
            assert await follower.told() == {}
    sessions = [s for s in cluster.broker.sessions._sessions.values() if s.visits is not None]
    assert [len(session.active) for session in sessions] == [0, 0]
    cluster.broker.replicas.check_in_sync_sets()
    assert all(one.isr == (1, 2, 3) for one in cluster.parted)
    for follower in followers:
        follower.ask(wait_ms=LONG_MS)
    await cluster.waits(2)
    cluster.send()
    for follower in followers:
        assert list(await follower.told()) == [0]
