"""What a partition is follows from state, at every change and at every start: a setting alone moves no offsets.

The controller refuses to change `diskless.enable`. Here the record is written all the same, as a newer version or a
damaged log may have done it: brokers must neither hide the records of a partition nor begin it again at offset 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from strandline.broker import Broker
from strandline.config import Settings
from strandline.controlplane.lifecycle import SqlLogLifecycle
from strandline.errors import StrandlineError
from strandline.hybrid.layout import Tier
from strandline.log import AppendOrigin
from strandline.metadata import NewTopic, TopicImage
from strandline.metadata.image import ConfigResource, ConfigResourceType
from strandline.metadata.records import ConfigRecord
from strandline.reads import EARLIEST, LATEST, FetchIsolation
from strandline.replication import Append
from strandline.sql import StoreUnavailable
from tests.broker import free_port
from tests.replication.conftest import batch


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Broker]:
    properties = {
        "strandline.data.dir": str(directory),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        await broker.diskless.wait_served(["t"])
        yield broker


async def append(broker: Broker) -> int:
    """Append one record, and return its offset."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finished(error: StrandlineError | None) -> None:
        done.set_result(None) if error is None else done.set_exception(error)

    partition = broker.partitions.find("t", 0)
    appended = partition.appends.append(Append(batch(b"x"), acks=-1, origin=AppendOrigin.CLIENT, done=finished))
    if not appended.is_done:
        await done
    return appended.info.first_offset


async def set_flag(broker: Broker, value: str | None) -> None:
    """Write the setting past the controller's refusal."""
    resource = ConfigResource(ConfigResourceType.TOPIC, "t")
    leadership = broker.controller.leadership
    record = ConfigRecord(resource=resource, key="diskless.enable", value=value)
    await leadership.append(leadership.require(), [record])


async def ends(broker: Broker) -> list[int]:
    partition = broker.partitions.find("t", 0)
    found = [
        await partition.list_offset(which, isolation=FetchIsolation.HIGH_WATERMARK, current_leader_epoch=-1)
        for which in (EARLIEST, LATEST)
    ]
    return [answer.offset for answer in found]


@pytest.mark.parametrize(
    ("is_diskless", "later", "tier"),
    [(False, "true", Tier.LOCAL), (True, "false", Tier.DISKLESS), (True, None, Tier.DISKLESS)],
    ids=["switched on", "switched off", "removed"],
)
async def test_records_stay_where_they_are_when_the_setting_alone_changes(
    tmp_path: Path, is_diskless: bool, later: str | None, tier: Tier
) -> None:
    configs = {"diskless.enable": "true"} if is_diskless else {}
    async with running(tmp_path) as broker:
        wish = NewTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
        (topic,) = await broker.controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        await broker.diskless.wait_served(["t"])
        assert [await append(broker), await append(broker)] == [0, 1]
        await set_flag(broker, later)
        assert await append(broker) == 2
        assert broker.partitions.find("t", 0).layout.tier_of(0) is tier
    async with running(tmp_path) as broker:
        assert await ends(broker) == [0, 3]
        assert await append(broker) == 3
        assert broker.partitions.find("t", 0).layout.tier_of(0) is tier
        others = broker.diskless.by_key if tier is Tier.LOCAL else broker.replicas.by_key
        assert ("t", 0) not in others, "a partition is served in one way"


async def test_a_topic_made_again_under_its_name_is_what_its_setting_says(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        for configs, tier in (({}, Tier.LOCAL), ({"diskless.enable": "true"}, Tier.DISKLESS), ({}, Tier.LOCAL)):
            wish = NewTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
            (topic,) = await broker.controller.create_topics([wish])
            assert isinstance(topic, TopicImage), topic
            await broker.diskless.wait_served(["t"])
            assert await append(broker) == 0
            assert broker.partitions.find("t", 0).layout.tier_of(0) is tier
            await broker.controller.delete_topics(["t"])


async def test_a_directory_that_names_no_topic_id_does_not_hide_a_diskless_partition(tmp_path: Path) -> None:
    """A crash may leave an empty directory of a topic that was deleted and created again as a diskless one."""
    async with running(tmp_path) as broker:
        wish = NewTopic(name="t", num_partitions=1, replication_factor=1, configs={"diskless.enable": "true"})
        await broker.controller.create_topics([wish])
        await broker.diskless.wait_served(["t"])
        assert [await append(broker), await append(broker)] == [0, 1]
        (log_dir,) = broker.settings.log.log_dirs
    (Path(log_dir) / "t-0").mkdir()
    async with running(tmp_path) as broker:
        assert await ends(broker) == [0, 2]
        assert await append(broker) == 2


async def test_a_control_plane_that_is_away_for_a_moment_does_not_end_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SqlLogLifecycle.diskless_topic_ids
    failures = [StoreUnavailable("A test takes the database away.")] * 2

    async def failing(lifecycle: SqlLogLifecycle) -> frozenset[UUID]:
        if failures:
            raise failures.pop()
        return await read(lifecycle)

    monkeypatch.setattr(SqlLogLifecycle, "diskless_topic_ids", failing)
    async with running(tmp_path):
        assert not failures
