"""The connection of a fetcher: what breaks it, what it survives, and that nothing waits for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
import uvloop

from strandline.config.replication import ReplicationSettings
from strandline.metadata import BrokerImage, Listener, MetadataImage
from strandline.model import TopicPartition, java_string_hash
from strandline.replication import Partition
from strandline.replication.fetching.fetchers import fetcher_number
from strandline.tasks import next_turn
from strandline.wire.errors import ErrorCode
from strandline.wire.fetch_codec import FetchAnswer
from tests.log.harness import batch
from tests.replication.fetching.live import FixedImages, LiveFollower, live_follower
from tests.replication.fetching.scripted import CLUSTER_ID, FetchCall, InMemory, ScriptedLeader, scripted_leader
from tests.waiting import until

TOPIC_ID = UUID(int=5)
QUICK = ReplicationSettings(replica_fetch_backoff_ms=50)


def image(*ports: int) -> MetadataImage:
    """A cluster whose brokers 1, 3, 4 and so on listen there."""
    brokers = {
        number: BrokerImage(
            node_id=number,
            epoch=7,
            incarnation_id=UUID(int=number),
            listeners=(Listener("PLAINTEXT", "127.0.0.1", port),),
        )
        for number, port in zip((1, 3, 4), ports, strict=False)
    }
    return MetadataImage(cluster_id=CLUSTER_ID, brokers=brokers)


def rows(number: int = 0, *, base: int = 0, value: bytes = b"v", count: int = 1) -> FetchAnswer:
    """An answer with one batch."""
    records = bytes(batch(count, base_offset=base, leader_epoch=0, value=value))
    return FetchAnswer(TOPIC_ID.bytes, number, 0, base + count, -1, 0, None, InMemory(records))


@asynccontextmanager
async def following(
    leader: ScriptedLeader, directory: Path, settings: ReplicationSettings = QUICK
) -> AsyncIterator[tuple[LiveFollower, Partition]]:
    async with live_follower(directory, FixedImages(image(leader.port)), settings) as follower:
        replica = follower.replica("orders", TOPIC_ID)
        follower.follow(replica)
        yield follower, replica


async def has(replica: Partition, end: int) -> None:
    await until(lambda: replica.log.log_end_offset == end, f"the log to end at {end}")


async def test_one_request_is_under_way_and_the_next_one_says_what_is_written(tmp_path: Path) -> None:
    async with scripted_leader() as leader, following(leader, tmp_path) as (_, replica):
        call = await leader.next_call()
        assert (call.request.session_id, call.request.session_epoch, call.offsets) == (0, 0, [0])
        call.answer(rows())
        call = await leader.next_call()
        assert (call.request.session_id, call.request.session_epoch, call.offsets) == (9, 1, [1])
        assert replica.log.log_end_offset == 1
        call.answer(rows(base=1, value=b"." * 400_000))
        call = await leader.next_call()
        assert call.offsets == [2]
        assert replica.log.log_end_offset == 2, "it says so only when it is written"
        call.answer()
        assert (await leader.next_call()).offsets == []
        assert leader.connections == 1


async def test_an_answer_may_come_in_pieces_of_any_size(tmp_path: Path) -> None:
    async with scripted_leader() as leader, following(leader, tmp_path) as (_, replica):
        call = await leader.next_call()
        frame = call.frame([rows(value=b"x" * 200_000)])
        for start, end in ((0, 1), (1, 3), (3, 5), (5, 70_000), (70_000, len(frame))):
            call.send(frame[start:end])
            for _ in range(20):
                await next_turn()
        call = await leader.next_call()
        assert call.offsets == [1]
        assert replica.log.log_end_offset == 1


async def hang_up(call: FetchCall) -> None:
    call.hang_up()


async def garbage(call: FetchCall) -> None:
    call.send(b"\x00\x00\x00\x20" + b"\xff" * 32)


async def absurd_length(call: FetchCall) -> None:
    call.send(b"\x7f\xff\xff\xff")


async def twice(call: FetchCall) -> None:
    call.send(call.frame() * 2)


async def cut(call: FetchCall) -> None:
    call.send(call.frame([rows()])[:-9])
    call.hang_up()


async def refused(call: FetchCall) -> None:
    call.answer(error_code=int(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR))


@pytest.mark.parametrize("fault", [hang_up, garbage, absurd_length, twice, cut, refused], ids=lambda one: one.__name__)
async def test_after_a_fault_everything_is_asked_again(tmp_path: Path, fault: object) -> None:
    async with scripted_leader() as leader, following(leader, tmp_path) as (_, replica):
        (await leader.next_call()).answer(rows())
        await fault(await leader.next_call())  # type: ignore[operator]
        while (call := await leader.next_call()).request.session_epoch != 0:
            """What was sent before the fault was seen."""
        assert call.offsets == [1]
        call.answer(rows(base=1))
        await has(replica, 2)
        assert leader.connections >= 2


async def test_a_leader_that_does_not_answer_is_left(tmp_path: Path) -> None:
    settings = ReplicationSettings(
        replica_fetch_backoff_ms=50, replica_socket_timeout_ms=200, replica_fetch_wait_max_ms=100
    )
    async with scripted_leader() as leader, following(leader, tmp_path, settings):
        await leader.next_call()
        again = await leader.next_call()
        assert again.request.session_epoch == 0
        assert leader.connections == 2


@pytest.mark.parametrize(("field", "value"), [("cluster_id", "another"), ("newest_fetch", 14)])
async def test_a_broker_that_is_no_leader_of_this_cluster_is_not_asked(
    tmp_path: Path, field: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with scripted_leader() as leader:
        setattr(leader, field, value)
        async with following(leader, tmp_path):
            await until(lambda: leader.connections >= 3, "some attempts")
            assert leader.calls.empty()
    said = [record.message for record in caplog.records if "copying from broker 1" in record.message]
    assert len(said) == 1, "the same sentence is said once"


async def test_a_leader_without_an_address_is_tried_again(tmp_path: Path) -> None:
    async with scripted_leader() as leader:
        images = FixedImages(MetadataImage(cluster_id=CLUSTER_ID))
        async with live_follower(tmp_path, images, QUICK) as follower:
            replica = follower.replica("orders", TOPIC_ID)
            follower.follow(replica)
            images.image = image(leader.port)
            (await leader.next_call()).answer(rows())
            await has(replica, 1)


async def test_a_new_partition_does_not_wait_until_the_request_under_way_is_answered(tmp_path: Path) -> None:
    """The leader holds it until there are records, which may be long. The session goes on over another connection."""
    async with scripted_leader() as leader, following(leader, tmp_path) as (follower, _):
        (await leader.next_call()).answer()
        await leader.next_call()  # which is never answered
        follower.follow(follower.replica("orders", TOPIC_ID, 1))
        call = await leader.next_call()
        assert (call.request.session_id, call.request.session_epoch) == (9, 2)
        assert [entry.partition for entry in call.request.entries] == [1]
        assert leader.connections == 2


async def test_partitions_without_news_are_not_in_the_request(tmp_path: Path) -> None:
    async with scripted_leader() as leader, following(leader, tmp_path) as (follower, _):
        for number in range(1, 30):
            follower.follow(follower.replica("orders", TOPIC_ID, number))
        call = await leader.next_call()
        assert len(call.request.entries) == 30
        call.answer(rows(4), rows(7, count=3))
        call = await leader.next_call()
        assert [(entry.partition, entry.fetch_offset) for entry in call.request.entries] == [(4, 1), (7, 3)]


async def test_a_partition_moves_to_its_next_leader(tmp_path: Path) -> None:
    async with scripted_leader() as first, scripted_leader() as second:
        images = FixedImages(image(first.port, second.port))
        async with live_follower(tmp_path, images, QUICK) as follower:
            replica = follower.replica("orders", TOPIC_ID)
            follower.follow(replica)
            (await first.next_call()).answer(rows())
            await first.next_call()
            follower.follow(replica, leader=3, epoch=1)
            call = await second.next_call()
            [entry] = call.request.entries
            assert (entry.fetch_offset, entry.current_leader_epoch, entry.last_fetched_epoch) == (1, 1, 0)
            assert follower.fetchers.status().connections == 1, "the fetcher of the first one had nothing left to do"


async def test_a_partition_that_this_broker_leads_or_none_is_not_copied(tmp_path: Path) -> None:
    async with scripted_leader() as leader, following(leader, tmp_path) as (follower, replica):
        await leader.next_call()
        follower.follow(replica, leader=2, epoch=1)
        assert follower.fetchers.status().connections == 0
        follower.follow(replica, leader=-1, epoch=2)
        assert follower.fetchers.status().connections == 0
        follower.follow(replica, leader=1, epoch=3)
        while (await leader.next_call()).request.entries[0].current_leader_epoch != 3:
            """The request that was given up."""
        follower.fetchers.replica_removed(replica, is_deleted=True)
        assert follower.fetchers.status().connections == 0


async def test_partitions_are_spread_over_the_fetchers_of_a_leader(tmp_path: Path) -> None:
    settings = ReplicationSettings(num_replica_fetchers=2)
    async with scripted_leader() as leader, following(leader, tmp_path, settings) as (follower, _):
        for number in range(1, 8):
            follower.follow(follower.replica("orders", TOPIC_ID, number))
        calls = [await leader.next_call(), await leader.next_call()]
        asked = [{entry.partition for entry in call.request.entries} for call in calls]
        assert sorted(map(sorted, asked)) == [[0, 2, 4, 6], [1, 3, 5, 7]]
        assert leader.connections == 2
        follower.settings = ReplicationSettings(num_replica_fetchers=1)
        follower.fetchers.follow_settings()
        assert follower.fetchers.status().connections == 1
        await until(lambda: leader.calls.qsize(), "another request")


def test_the_number_of_a_fetcher_is_kafkas() -> None:
    assert java_string_hash("orders") == -1008770331
    assert [fetcher_number(TopicPartition("orders", number), 4) for number in range(3)] == [
        abs(31 * -1008770331 + number) % 4 for number in range(3)
    ]


async def test_one_bad_partition_does_not_stop_the_others(tmp_path: Path) -> None:
    async with scripted_leader() as leader, following(leader, tmp_path) as (follower, replica):
        other = follower.replica("orders", TOPIC_ID, 1)
        follower.follow(other)
        call = await leader.next_call()
        assert len(call.request.entries) == 2
        fenced = FetchAnswer(TOPIC_ID.bytes, 0, int(ErrorCode.FENCED_LEADER_EPOCH))
        call.answer(fenced, rows(1))
        call = await leader.next_call()
        assert call.request.forgotten == [(TOPIC_ID.bytes, 0)]
        assert call.offsets == [1]
        assert (replica.log.log_end_offset, other.log.log_end_offset) == (0, 1)
        assert follower.fetchers.status().failed_partitions == 1


def test_faults_on_the_loop_of_a_broker(tmp_path: Path) -> None:
    """Its transports are not asyncio's."""

    async def faults() -> None:
        async with scripted_leader() as leader, following(leader, tmp_path) as (_, replica):
            for number, fault in enumerate((hang_up, garbage, absurd_length, twice, cut)):
                await answered(leader, number)
                await fault(await leader.next_call())
                await has(replica, number + 1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(faults())


async def answered(leader: ScriptedLeader, offset: int) -> None:
    """The next request for this offset is answered with a batch."""
    while (call := await leader.next_call()).offsets != [offset]:
        """What was sent before the fault was seen."""
    call.answer(rows(base=offset))


async def test_stopping_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    async with scripted_leader() as leader:
        async with following(leader, tmp_path):
            await leader.next_call()
        assert leader.connections == 1
