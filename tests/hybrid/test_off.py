"""What a broker answers without remote storage, and while diskless topics are not open."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from strandline.clock import SystemClock
from strandline.config.remote import TierSettings
from strandline.errors import KafkaStorageError, NotLeaderOrFollower
from strandline.hybrid.diskless.engine import DisklessEngine, DisklessNotOpen, is_open_engine
from strandline.hybrid.remote.ports import TieredStorage
from strandline.hybrid.remote.topics import NoRemoteStorage, TieredTopics, is_open_tier
from strandline.model import TopicIdPartition, TopicPartition
from strandline.reads import FetchIsolation
from strandline.replication import Partition


class Replica:
    """As much of one as an error names."""

    topic_partition = TopicPartition("t", 0)


P0 = TopicIdPartition(UUID(int=1), TopicPartition("t", 0))
REPLICA = cast("Partition", Replica())
OFFSETS: Any = {"current_leader_epoch": 3, "timeout_ms": 0}
NOT_OPENED = (
    r"^t-0 has records in remote storage, which this broker has not opened: remote\.log\.storage\.system\.enable has "
    r"to be true\.$"
)


async def test_without_remote_storage_reads_are_refused_with_the_setting() -> None:
    storage: TieredStorage = TieredTopics().storage
    isolation = FetchIsolation.HIGH_WATERMARK
    with pytest.raises(KafkaStorageError, match=NOT_OPENED):
        storage.read_now(REPLICA, 0, 1, isolation=isolation, min_one_message=True)
    with pytest.raises(KafkaStorageError, match=NOT_OPENED):
        await storage.offset_by_timestamp(REPLICA, 0, isolation=isolation, **OFFSETS)
    with pytest.raises(KafkaStorageError, match=NOT_OPENED):
        await storage.offset_of_max_timestamp(REPLICA, **OFFSETS)
    with pytest.raises(KafkaStorageError, match=r"^For a test\.$"):
        storage.opened(lambda: "For a test.")


async def test_without_remote_storage_there_are_no_segments_and_nothing_is_shown() -> None:
    storage: TieredStorage = NoRemoteStorage()
    assert not storage.is_open
    assert not is_open_tier(storage)
    storage.follow(TierSettings())
    storage.copy_now(P0)
    assert storage.prefix_status(REPLICA, 1) is None
    assert storage.finder(REPLICA)(0) is None
    assert list(await storage.segments_of(P0, SystemClock())) == []
    assert (storage.url, storage.remote_bytes(REPLICA), storage.status(), list(storage.health())) == ("", 0, None, [])
    assert await storage.partition_rows([P0]) is None
    assert storage.trouble_of(7) == (
        "Broker 7 has not opened remote storage: remote.log.storage.system.enable has to be true."
    )


def test_while_diskless_topics_are_not_open_clients_hear_why() -> None:
    troubles = ["the object store is not open"]
    engine: DisklessEngine = DisklessNotOpen(7, lambda: troubles[-1])
    found = [engine.why_unserved(TopicPartition("t", 0), is_led=is_led) for is_led in (True, False)]
    assert [(type(error), str(error)) for error in found] == [
        (KafkaStorageError, "t-0 is not served yet: the object store is not open"),
        (NotLeaderOrFollower, "t-0 is not served yet: the object store is not open"),
    ]
    troubles.append("it is away")
    closed = engine.why_closed()
    assert (type(closed), str(closed)) == (KafkaStorageError, "Diskless topics: it is away")
    assert engine.why_not_writable() == "Diskless topics are not open on broker 7: it is away."


def test_while_diskless_topics_are_not_open_nothing_is_known_and_nothing_is_shown() -> None:
    engine: DisklessEngine = DisklessNotOpen(7, lambda: "")
    assert not engine.is_open
    assert not is_open_engine(engine)
    engine.hurry()
    engine.learn(cast("Any", None))
    engine.forget(P0)
    engine.log_start_moved(P0, 1)
    assert (engine.url, engine.is_writing, engine.status()) == ("", False, None)
