"""What `MetadataTopic` promises, kept by every implementation; and what only real files can go through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.model import REMOTE_LOG_METADATA_TOPIC, TopicPartition
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.remote.topic_based.topic import (
    MetadataTopic,
    MetadataTopicRecord,
    MetadataTopicTruncated,
    MetadataTopicUnavailable,
)
from strandline.replication.remote_metadata import read_chunk
from strandline.testing.metadata_topic import MemoryMetadataTopic
from tests.broker import running_broker
from tests.remote.topic_based.topics import open_topic, topic_led_by

LONG = 20.0


@pytest_asyncio.fixture(params=["memory", "led here", "led by another broker"])
async def topic(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataTopic]:
    match request.param:
        case "memory":
            yield MemoryMetadataTopic()
        case "led here":
            with open_topic(tmp_path) as (replicated, _):
                yield replicated
        case _:
            with running_broker(tmp_path) as broker:
                elsewhere, _ = topic_led_by(broker)
                yield elsewhere
                await elsewhere.close()


async def test_it_is_described_and_its_partitions_are_led(topic: MetadataTopic) -> None:
    description = topic.describe()
    assert description is not None
    assert description.partitions == 3
    assert set(topic.led_partitions()) <= {0, 1, 2}


async def test_what_is_appended_is_read_in_order_from_any_offset(topic: MetadataTopic) -> None:
    values = [b"value %d" % number for number in range(20)]
    assert [await topic.append(1, value) for value in values] == list(range(20))
    assert await topic.end_offset(1) == 20
    assert await topic.end_offset(0) == 0
    chunk = await topic.read(1, 5, wait=LONG)
    assert list(chunk.records) == [MetadataTopicRecord(offset, values[offset]) for offset in range(5, 20)]
    assert chunk.next_offset == 20


async def test_a_read_at_the_end_waits_for_the_next_record(topic: MetadataTopic) -> None:
    await topic.append(0, b"first")
    reading = asyncio.create_task(topic.read(0, 1, wait=LONG))
    await asyncio.to_thread(lambda: None)
    assert not reading.done()
    await topic.append(0, b"second")
    assert list((await reading).records) == [MetadataTopicRecord(1, b"second")]


async def test_a_read_at_the_end_gives_up_after_its_wait(topic: MetadataTopic) -> None:
    chunk = await topic.read(0, 0, wait=0.01)
    assert (list(chunk.records), chunk.next_offset) == ([], 0)


async def test_a_read_beyond_the_end_says_that_the_topic_is_not_what_it_was(topic: MetadataTopic) -> None:
    await topic.append(0, b"first")
    with pytest.raises(MetadataTopicTruncated, match="ends at offset 1, before 7"):
        await topic.read(0, 7, wait=LONG)


async def test_records_survive_a_restart_and_a_trimmed_beginning_is_skipped(tmp_path: Path) -> None:
    with open_topic(tmp_path) as (topic, replicas):
        for number in range(5):
            await topic.append(2, b"%d" % number)
        replicas.get_leader(TopicPartition(REMOTE_LOG_METADATA_TOPIC, 2)).delete_records(3)
    with open_topic(tmp_path) as (topic, _):
        chunk = await topic.read(2, 0, wait=LONG)
        assert [record.value for record in chunk.records] == [b"3", b"4"]


def _batch(offset: int, value: bytes) -> bytes:
    return bytes(build_batch([Record(offset, 1000, None, value)], base_offset=offset))


def test_a_damaged_batch_is_told_and_the_others_are_read() -> None:
    damaged = bytearray(_batch(1, b"b"))
    damaged[-1] ^= 1
    chunk = read_chunk(_batch(0, b"a") + bytes(damaged) + _batch(2, b"c"), 0)
    assert list(chunk.records) == [
        MetadataTopicRecord(0, b"a"),
        MetadataTopicRecord(1, None, "The batch does not match its checksum."),
        MetadataTopicRecord(2, b"c"),
    ]
    assert chunk.next_offset == 3


def test_a_batch_that_is_cut_at_the_end_is_left_to_the_next_read() -> None:
    chunk = read_chunk(_batch(0, b"a") + _batch(1, b"b")[:-3], 0)
    assert (list(chunk.records), chunk.next_offset) == ([MetadataTopicRecord(0, b"a")], 1)


async def test_a_leader_that_is_away_is_an_error_until_it_is_back(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        topic, _ = topic_led_by(broker)
        await topic.append(0, b"first")
        broker.stop()
        for work in (topic.append(0, b"lost"), topic.end_offset(0), topic.read(0, 1, wait=LONG)):
            with pytest.raises(MetadataTopicUnavailable, match="The leader of __remote_log_metadata-0 is not reached"):
                await work
        broker.start()
        assert await topic.append(0, b"second") == 1
        assert [record.value for record in (await topic.read(0, 0, wait=LONG)).records] == [b"first", b"second"]
        await topic.close()


async def test_a_partition_without_leader_is_an_error(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        topic, images = topic_led_by(broker)
        images.lose_leaders()
        with pytest.raises(MetadataTopicUnavailable, match="has no leader at the moment"):
            await topic.append(0, b"lost")


async def test_somebody_of_another_cluster_is_not_the_leader(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        topic, images = topic_led_by(broker)
        images.image = replace(images.image, cluster_id="ours")
        with pytest.raises(MetadataTopicUnavailable, match="A broker of another cluster"):
            await topic.end_offset(0)
        await topic.close()
