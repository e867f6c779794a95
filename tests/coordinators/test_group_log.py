"""The contract of `GroupLog`, on the list of the tests and on real partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import GroupLog, LogRecord, ReadBatch, ReadRecord
from strandline.errors import MessageTooLarge, UnknownTopicOrPartition
from strandline.records.batch import iter_headers
from tests.coordinators.memory_log import MemoryGroupLog
from tests.coordinators.replicas import open_group_log


@pytest_asyncio.fixture(params=["list", "partitions", "compressed partitions"])
async def group_log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[GroupLog]:
    if request.param == "list":
        yield MemoryGroupLog(2)
        return
    settings = replace(
        GroupSettings(),
        offsets_topic_compression_codec=4 if request.param.startswith("compressed") else 0,
        offsets_load_buffer_size=200,
    )
    with open_group_log(tmp_path, partitions=2, settings=settings) as (log, _):
        yield log


def records(*names: str) -> list[LogRecord]:
    return [LogRecord(name.encode(), name.encode() if name != "none" else None, 1000) for name in names]


async def read_all(log: GroupLog, partition: int) -> list[ReadBatch]:
    return [batch async for batch in log.read(partition)]


async def test_an_empty_partition_reads_as_nothing(group_log: GroupLog) -> None:
    assert await read_all(group_log, 0) == []
    assert group_log.partition_count() == 2
    assert group_log.max_batch_bytes(0) > 1_000_000


async def test_records_get_consecutive_offsets_in_the_order_of_the_appends(group_log: GroupLog) -> None:
    assert await group_log.append(0, records("a", "b")) == 0
    assert await group_log.append(0, records("c")) == 2
    assert await group_log.append(1, records("x")) == 0
    assert await group_log.append(0, records("none")) == 3
    read = [record for batch in await read_all(group_log, 0) for record in batch.records]
    assert read == [
        ReadRecord(0, b"a", b"a"),
        ReadRecord(1, b"b", b"b"),
        ReadRecord(2, b"c", b"c"),
        ReadRecord(3, b"none", None),
    ]
    assert [record.key for batch in await read_all(group_log, 1) for record in batch.records] == [b"x"]


async def test_much_more_than_one_buffer_is_read_whole(group_log: GroupLog) -> None:
    for at in range(100):
        await group_log.append(0, records(*(f"{at}-{n}" for n in range(at % 7 + 1))))
    read = [record.offset for batch in await read_all(group_log, 0) for record in batch.records]
    assert read == list(range(len(read)))
    assert len(read) == sum(at % 7 + 1 for at in range(100))


async def test_ordinary_records_belong_to_no_transaction(group_log: GroupLog) -> None:
    await group_log.append(0, records("a"))
    (batch,) = await read_all(group_log, 0)
    assert (batch.producer_id, batch.is_transactional, batch.committed) == (-1, False, None)


async def test_batches_look_like_those_of_kafkas_coordinator(tmp_path: Path) -> None:
    with open_group_log(tmp_path) as (log, _):
        await log.append(0, records("a", "b"))
    segment = tmp_path / "__consumer_offsets-0" / f"{0:020}.log"
    ((_, header),) = iter_headers(segment.read_bytes())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert header.leader_epoch == 3
    assert header.attributes == 0


async def test_errors_of_the_partition_come_through(tmp_path: Path) -> None:
    with open_group_log(tmp_path) as (log, _):
        with pytest.raises(UnknownTopicOrPartition):
            await log.append(5, records("a"))
        with pytest.raises(MessageTooLarge):
            await log.append(0, [LogRecord(b"k", b"v" * 2_000_000, 0)])
        assert await read_all(log, 0) == []
