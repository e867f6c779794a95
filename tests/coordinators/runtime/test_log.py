"""The contract of `CoordinatorLog`, on the list of the tests and on real partitions."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.coordinators.runtime import (
    CoordinatorLog,
    CoordinatorRecord,
    ReadBatch,
    ReadRecord,
    TransactionEnd,
    WriteResult,
)
from strandline.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    StrandlineError,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from strandline.model import NO_OFFSET, ProducerAndEpoch, TopicPartition
from strandline.records.batch import iter_headers
from strandline.records.codecs import Codec
from strandline.replication.leader import LARGE_APPEND
from tests.coordinators.runtime.appending import appended, ended
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog
from tests.coordinators.runtime.replicas import LEADER_EPOCH, TOPIC, open_coordinator_log


@pytest_asyncio.fixture(params=["list", "partitions", "compressed partitions"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CoordinatorLog]:
    if request.param == "list":
        yield MemoryCoordinatorLog(2, LEADER_EPOCH)
        return
    codec = Codec.ZSTD if request.param.startswith("compressed") else Codec.NONE
    with open_coordinator_log(tmp_path, partitions=2, topic=replace(TOPIC, codec=codec, load_buffer_bytes=200)) as (
        partitions,
        _,
    ):
        yield partitions


def records(*names: str) -> list[CoordinatorRecord]:
    return [CoordinatorRecord(name.encode(), name.encode() if name != "none" else None, 1000) for name in names]


async def read_all(log: CoordinatorLog, partition: int) -> list[ReadBatch]:
    return [batch async for batch in log.read(partition, leader_epoch=LEADER_EPOCH)]


async def test_an_empty_partition_reads_as_nothing(log: CoordinatorLog) -> None:
    assert await read_all(log, 0) == []
    assert log.partition_count() == 2
    assert log.max_batch_bytes(0) > 1_000_000


async def test_records_get_consecutive_offsets_in_the_order_of_the_appends(log: CoordinatorLog) -> None:
    assert await appended(log, 0, records("a", "b"), leader_epoch=LEADER_EPOCH) == 0
    assert await appended(log, 0, records("c"), leader_epoch=LEADER_EPOCH) == 2
    assert await appended(log, 1, records("x"), leader_epoch=LEADER_EPOCH) == 0
    assert await appended(log, 0, records("none"), leader_epoch=LEADER_EPOCH) == 3
    read = [record for batch in await read_all(log, 0) for record in batch.records]
    assert read == [
        ReadRecord(0, b"a", b"a"),
        ReadRecord(1, b"b", b"b"),
        ReadRecord(2, b"c", b"c"),
        ReadRecord(3, b"none", None),
    ]
    assert [record.key for batch in await read_all(log, 1) for record in batch.records] == [b"x"]


async def test_much_more_than_one_buffer_is_read_whole(log: CoordinatorLog) -> None:
    for at in range(100):
        await appended(log, 0, records(*(f"{at}-{n}" for n in range(at % 7 + 1))), leader_epoch=LEADER_EPOCH)
    read = [record.offset for batch in await read_all(log, 0) for record in batch.records]
    assert read == list(range(len(read)))
    assert len(read) == sum(at % 7 + 1 for at in range(100))


async def test_what_is_still_being_written_when_a_load_begins_is_read(tmp_path: Path) -> None:
    """A broker becomes the leader while it copies a large answer of the leader before."""
    large = CoordinatorRecord(b"large", b"x" * LARGE_APPEND, 1000)
    with open_coordinator_log(tmp_path) as (log, replicas):
        results: list[WriteResult] = []
        log.append(0, [large], results.append, leader_epoch=LEADER_EPOCH)
        assert replicas.find(TOPIC.name, 0).log.has_pending_appends
        (batch,) = await read_all(log, 0)
        assert [record.key for record in batch.records] == [b"large"]


async def test_ordinary_records_belong_to_no_transaction(log: CoordinatorLog) -> None:
    await appended(log, 0, records("a"), leader_epoch=LEADER_EPOCH)
    (batch,) = await read_all(log, 0)
    assert (batch.producer_id, batch.is_transactional, batch.committed) == (-1, False, None)


async def test_a_transaction_is_open_from_its_first_records_to_its_marker(log: CoordinatorLog) -> None:
    producer, other = ProducerAndEpoch(7, 1), ProducerAndEpoch(8, 1)
    assert not log.has_transaction(0, producer)
    await appended(log, 0, records("a"), leader_epoch=LEADER_EPOCH, producer=producer)
    await appended(log, 0, records("b"), leader_epoch=LEADER_EPOCH)
    assert log.has_transaction(0, producer)
    for stranger in (other, producer._replace(epoch=0), producer._replace(epoch=2)):
        assert not log.has_transaction(0, stranger)
    assert not log.has_transaction(1, producer)
    await ended(log, 0, TransactionEnd(producer, True, 0, 0), leader_epoch=LEADER_EPOCH)
    assert not log.has_transaction(0, producer)


@pytest.mark.parametrize(("epoch", "error"), [(2, FencedLeaderEpoch), (4, UnknownLeaderEpoch)])
async def test_another_leader_epoch_is_refused(log: CoordinatorLog, epoch: int, error: type[StrandlineError]) -> None:
    await appended(log, 0, records("a"), leader_epoch=LEADER_EPOCH)
    with pytest.raises(error):
        await appended(log, 0, records("b"), leader_epoch=epoch)
    with pytest.raises(error):
        _ = [batch async for batch in log.read(0, leader_epoch=epoch)]
    (batch,) = await read_all(log, 0)
    assert [record.key for record in batch.records] == [b"a"]


async def test_what_is_appended_at_once_stands_behind_what_was_appended_before(log: CoordinatorLog) -> None:
    assert await appended(log, 0, records("a", "b"), leader_epoch=LEADER_EPOCH) == 0
    assert log.append_now(0, records("c", "none"), leader_epoch=LEADER_EPOCH) == 2
    assert await appended(log, 0, records("d"), leader_epoch=LEADER_EPOCH) == 4
    read = [(record.offset, record.key, record.value) for batch in await read_all(log, 0) for record in batch.records]
    assert read[2:] == [(2, b"c", b"c"), (3, b"none", None), (4, b"d", b"d")]


@pytest.mark.parametrize(("epoch", "error"), [(2, FencedLeaderEpoch), (4, UnknownLeaderEpoch)])
async def test_nothing_is_appended_at_once_in_another_leader_epoch(
    log: CoordinatorLog, epoch: int, error: type[StrandlineError]
) -> None:
    with pytest.raises(error):
        log.append_now(0, records("b"), leader_epoch=epoch)
    assert await read_all(log, 0) == []


async def test_an_append_at_once_gives_the_same_bytes(tmp_path: Path) -> None:
    with open_coordinator_log(tmp_path, partitions=2) as (log, _):
        for partition in range(2):
            await appended(log, partition, records("first"), leader_epoch=LEADER_EPOCH)
        await appended(log, 0, records("a", "b"), leader_epoch=LEADER_EPOCH)
        assert log.append_now(1, records("a", "b"), leader_epoch=LEADER_EPOCH) == 1
    one, other = (tmp_path / f"__consumer_offsets-{partition}" / f"{0:020}.log" for partition in range(2))
    assert one.read_bytes() == other.read_bytes()


async def test_what_cannot_be_appended_at_once_leaves_no_trace(tmp_path: Path) -> None:
    large = [CoordinatorRecord(b"k", b"v" * 2_000_000, 0)]
    with open_coordinator_log(tmp_path) as (log, _):
        await appended(log, 0, records("a"), leader_epoch=LEADER_EPOCH)
        with pytest.raises(UnknownTopicOrPartition):
            log.append_now(5, records("b"), leader_epoch=LEADER_EPOCH)
        assert log.append_now(0, large, leader_epoch=LEADER_EPOCH) == NO_OFFSET
        (batch,) = await read_all(log, 0)
        assert [record.key for record in batch.records] == [b"a"]


async def test_nothing_is_appended_at_once_if_another_replica_has_to_have_it(tmp_path: Path) -> None:
    with open_coordinator_log(tmp_path, isr=(1, 2)) as (log, _):
        assert log.append_now(0, records("a"), leader_epoch=LEADER_EPOCH) == NO_OFFSET
        assert await read_all(log, 0) == []


async def test_a_disk_that_fails_is_reported_by_the_append_that_follows(tmp_path: Path) -> None:
    with open_coordinator_log(tmp_path) as (log, replicas):
        await appended(log, 0, records("a"), leader_epoch=LEADER_EPOCH)
        file = replicas.get_leader(TopicPartition(TOPIC.name, 0)).log.segments.active.file
        read_only = os.open(file.path, os.O_RDONLY)
        os.dup2(read_only, file.fileno())
        os.close(read_only)
        assert log.append_now(0, records("b"), leader_epoch=LEADER_EPOCH) == NO_OFFSET
        with pytest.raises(KafkaStorageError):
            await appended(log, 0, records("b"), leader_epoch=LEADER_EPOCH)


async def test_batches_look_like_those_of_kafkas_coordinator(tmp_path: Path) -> None:
    with open_coordinator_log(tmp_path) as (log, _):
        await appended(log, 0, records("a", "b"), leader_epoch=LEADER_EPOCH)
    segment = tmp_path / "__consumer_offsets-0" / f"{0:020}.log"
    ((_, header),) = iter_headers(segment.read_bytes())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert header.leader_epoch == 3
    assert header.attributes == 0


async def test_errors_of_the_partition_come_through(tmp_path: Path) -> None:
    with open_coordinator_log(tmp_path) as (log, _):
        with pytest.raises(UnknownTopicOrPartition):
            await appended(log, 5, records("a"), leader_epoch=LEADER_EPOCH)
        with pytest.raises(MessageTooLarge):
            await appended(log, 0, [CoordinatorRecord(b"k", b"v" * 2_000_000, 0)], leader_epoch=LEADER_EPOCH)
        assert await read_all(log, 0) == []


async def test_an_append_is_done_when_it_is_replicated(tmp_path: Path) -> None:
    results = list[WriteResult]()
    with open_coordinator_log(tmp_path, isr=(1, 2)) as (log, replicas):
        log.append(0, records("a"), results.append, leader_epoch=LEADER_EPOCH)
        assert results == []
        replicas.get_leader(TopicPartition(TOPIC.name, 0)).close(NotLeaderOrFollower("It is over."))
        (result,) = results
        assert isinstance(result.error, NotLeaderOrFollower)
