"""One broker in this process, whose topics become diskless, and what it tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.switching.status import PartitionMigration
from strandline.log import AppendOrigin
from strandline.metadata import NewTopic, TopicImage
from strandline.model import TopicPartition
from strandline.reads import EARLIEST, LATEST, FetchIsolation
from strandline.replication import Append, Partition
from tests.broker import free_port
from tests.replication.conftest import batch
from tests.switched import is_switched

SECONDS = 15.0


class SwitchingBroker:
    """A broker, and short ways to its topics. Partition 0 is meant everywhere."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def create(self, name: str, *, records: int = 0) -> TopicImage:
        wish = NewTopic(name=name, num_partitions=1, replication_factor=1, configs={"remote.storage.enable": "true"})
        (topic,) = await self.broker.controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        for _ in range(records):
            await self.append(name)
        return topic

    async def flag(self, name: str, *, is_diskless: bool) -> None:
        """Change `diskless.enable` as a client does."""
        value = "true" if is_diskless else "false"
        await self.broker.topic_settings.change(name, "diskless.enable", value, validate_only=False)

    def served(self, name: str) -> ServedPartition:
        return self.broker.partitions.find(name, 0)

    async def append(self, name: str, *, producer_id: int = -1, sequence: int = -1) -> int:
        """Append one record, and return its offset. Raises the refusal."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finished(error: StrandlineError | None) -> None:
            done.set_result(None) if error is None else done.set_exception(error)

        partition, records = self.served(name), batch(b"x", producer_id=producer_id, sequence=sequence)
        appended = partition.appends.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=finished))
        if not appended.is_done:
            await done
        return appended.info.first_offset

    async def ends(self, name: str) -> tuple[int, int]:
        """What ListOffsets answers for the earliest and the latest offset."""
        partition = self.served(name)
        first, last = [
            await partition.list_offset(which, isolation=FetchIsolation.HIGH_WATERMARK, current_leader_epoch=-1)
            for which in (EARLIEST, LATEST)
        ]
        return first.offset, last.offset

    def replica(self, name: str) -> Partition:
        """The log below the boundary, of this broker."""
        return self.broker.replicas.get_leader(TopicPartition(name, 0))

    def known(self, name: str) -> PartitionMigration | None:
        """What the broker tells of the switch; None if there is none."""
        return self.broker.migrations.figures().led.get(TopicPartition(name, 0))

    async def switched(self, name: str) -> ServedPartition:
        """The partition, once it has its boundary and is served."""
        await self.until(lambda: is_switched(self.broker.partitions.by_key.get((name, 0))))
        return self.served(name)

    async def finished(self, name: str) -> None:
        """Return when the control plane says that the switch is over."""
        async with asyncio.timeout(SECONDS):
            while (await self.broker.migrations.topic_status(name)).position is not None:
                await SystemClock().sleep(0.01)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return when `is_so`."""
        async with asyncio.timeout(SECONDS):
            while not is_so():
                await SystemClock().sleep(0.01)


@asynccontextmanager
async def switching_broker(directory: Path, **properties: str) -> AsyncIterator[SwitchingBroker]:
    """A broker with its data in `directory`, until the block ends. It looks for segments to copy once an hour."""
    settings = {
        "strandline.data.dir": str(directory),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "3600000",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    async with Broker(Settings.from_properties(settings)) as broker:
        yield SwitchingBroker(broker)
