"""A tiered partition of a real broker that is the older part of a log: what its tier tells whoever joins the parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.config import Settings
from strandline.errors import FencedLeaderEpoch, KafkaStorageError, RequestTimedOut, UnknownLeaderEpoch
from strandline.hybrid.parts.replica import ReplicaPart
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.remote.tier import RemoteTier
from strandline.hybrid.remote.topics import NoRemoteStorage, is_open_tier
from strandline.log import AppendOrigin
from strandline.metadata import NewTopic, TopicImage
from strandline.reads import AnsweredOffsets, FetchIsolation, ReadResult
from strandline.replication import Append
from tests.broker import free_port
from tests.replication.conftest import batch

RECORDS = 4
TOPIC = {"remote.storage.enable": "true", "internal.segment.bytes": "200", "local.retention.bytes": "0"}
WHOLE = AnsweredOffsets(high_watermark=900, last_stable_offset=800, log_start_offset=0)


class Served(NamedTuple):
    """A partition whose records are all in remote storage, and whose log is empty at its end."""

    partition: ReplicaPart
    tier: RemoteTier
    broker: Broker


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    properties = {
        "strandline.data.dir": str(tmp_path),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "50",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "log.retention.check.interval.ms": "50",
        "log.initial.task.delay.ms": "0",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        wish = NewTopic(name="t", num_partitions=1, replication_factor=1, configs=TOPIC)
        (topic,) = await broker.controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        await broker.diskless.wait_served(["t"])
        served, tier = broker.partitions.find("t", 0), broker.tiered.storage
        partition = served.newest
        assert isinstance(partition, ReplicaPart)
        assert is_open_tier(tier)
        for _ in range(RECORDS):
            partition.appends.append(
                Append(batch(b"record", size=100), acks=1, origin=AppendOrigin.CLIENT, done=lambda _: None)
            )
        log = partition.replica.log
        log.roll()
        async with asyncio.timeout(30):
            while log.local_log_start_offset < RECORDS:
                await asyncio.to_thread(lambda: None)
        yield Served(partition, tier, broker)


async def test_the_status_of_its_prefix(served: Served) -> None:
    status = served.tier.prefix_status(served.partition.replica, RECORDS)
    assert status is not None
    assert status.is_complete
    assert (status.tiered_log_start, status.tiered_high) == (0, RECORDS - 1)
    assert status.copied_bytes == status.total_bytes > 0
    later = served.tier.prefix_status(served.partition.replica, RECORDS + 1)
    assert later is not None
    assert not later.is_complete


async def test_reads_answer_with_the_offsets_of_the_whole_log(served: Served) -> None:
    answer: object = served.tier.read_now(
        served.partition.replica,
        0,
        1 << 20,
        isolation=FetchIsolation.HIGH_WATERMARK,
        min_one_message=True,
        whole=lambda: WHOLE,
    )
    if isinstance(answer, PendingRead):
        (answer,) = await served.broker.partitions.read(
            [answer], max_bytes=1 << 20, min_one_message=True, is_wanted=lambda: True
        )
    elif isinstance(answer, FinalRead):
        answer = answer.result
    assert isinstance(answer, ReadResult)
    assert answer.records is not None
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == WHOLE


async def test_its_newest_record(served: Served) -> None:
    replica, tier = served.partition.replica, served.tier
    epoch = replica.leader_epoch
    found = await tier.offset_of_max_timestamp(replica, current_leader_epoch=epoch, timeout_ms=30_000)
    assert found is not None
    assert 0 <= found.offset < RECORDS
    with pytest.raises((FencedLeaderEpoch, UnknownLeaderEpoch)):
        await tier.offset_of_max_timestamp(replica, current_leader_epoch=epoch + 1, timeout_ms=30_000)
    replica.log.delete_records(RECORDS)
    assert await tier.offset_of_max_timestamp(replica, current_leader_epoch=epoch, timeout_ms=30_000) is None
    with pytest.raises(KafkaStorageError, match=r"remote\.log\.storage\.system\.enable"):
        await NoRemoteStorage().offset_of_max_timestamp(replica, current_leader_epoch=epoch, timeout_ms=1)


async def test_a_sealed_partition_does_not_stand_still(served: Served) -> None:
    """It is about to become another: a Fetch of an incremental session has to look at it each time."""
    partition = served.partition
    assert partition.stands_at(RECORDS, 0)
    partition.replica.restrict().seal(RequestTimedOut("sealed"))
    assert not partition.stands_at(RECORDS, 0)
    partition.replica.unseal()
    assert partition.stands_at(RECORDS, 0)
