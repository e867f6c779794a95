"""Metrics of each tier: a topic that was born diskless and converted has them as a switched one does."""

from __future__ import annotations

from pathlib import Path

from strandline.errors import StrandlineError
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.metadata import NewTopic, TopicImage
from strandline.reads import FetchIsolation, ReadResult
from tests.hybrid.switching.test_after_conversion import CONVERTING, convert
from tests.hybrid.switching.world import SwitchingBroker, switching_broker


async def create_diskless(world: SwitchingBroker, name: str) -> None:
    wish = NewTopic(name=name, num_partitions=1, replication_factor=1, configs={"diskless.enable": "true"})
    (topic,) = await world.broker.controller.create_topics([wish])
    assert isinstance(topic, TopicImage), topic
    await world.broker.diskless.wait_served([name])


async def read(world: SwitchingBroker, name: str, offset: int) -> ReadResult | StrandlineError:
    """One read of a Fetch."""
    found = world.served(name).read_now(offset, 1 << 20, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)
    if isinstance(found, PendingRead):
        (answer,) = await found.reader.read(
            [found.request], max_bytes=1 << 20, min_one_message=True, is_wanted=lambda: True
        )
        return answer
    return found.result if isinstance(found, FinalRead) else found


async def counted(world: SwitchingBroker, name: str, offset: int) -> tuple[int, int, int]:
    """How many reads this one has added: of remote storage, of the local log, of the diskless part."""
    before = world.broker.migrations.figures()
    answer = await read(world, name, offset)
    assert isinstance(answer, ReadResult), answer
    now = world.broker.migrations.figures()
    return (
        now.tiered_reads - before.tiered_reads,
        now.local_reads - before.local_reads,
        now.diskless_reads - before.diskless_reads,
    )


async def test_reads_of_a_converted_topic_count_for_the_tier_that_has_answered(tmp_path: Path) -> None:
    nothing_in_memory = {"inkless_consume_cache_max_bytes": "0"}
    async with switching_broker(tmp_path, **CONVERTING, **nothing_in_memory) as world:
        await create_diskless(world, "born")
        for _ in range(2):
            await world.append("born")
        assert await counted(world, "born", 0) == (0, 0, 1), "from rows"
        await convert(world, "born")
        assert await counted(world, "born", 0) == (1, 0, 0), "from a segment"
        await world.append("born")
        assert await counted(world, "born", 2) == (0, 0, 1), "from rows behind the segment"


async def test_reads_from_memory_count_as_those_of_the_diskless_part(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as world:
        await create_diskless(world, "born")
        await world.append("born")
        assert await counted(world, "born", 0) == (0, 0, 1)


async def test_every_read_of_a_switched_topic_counts_once(tmp_path: Path) -> None:
    async with switching_broker(tmp_path, **CONVERTING) as world:
        await world.create("t", records=3)
        await world.flag("t", is_diskless=True)
        await world.switched("t")
        await world.append("t")
        assert await counted(world, "t", 0) in {(0, 1, 0), (1, 0, 0)}, "below the boundary"
        assert await counted(world, "t", 3) == (0, 0, 1), "behind it"


async def test_offsets_of_topics_that_were_born_diskless(tmp_path: Path) -> None:
    async with switching_broker(tmp_path, **CONVERTING) as world:
        for name in ("young", "converted"):
            await create_diskless(world, name)
            for _ in range(2):
                await world.append(name)
        await world.create("tiered", records=2)
        await convert(world, "converted")
        await world.broker.monitoring.refresh()
        rows = {row.topic: row for row in world.broker.monitoring.partition_rows()}
        offsets = {name: (row.tiered_high, row.diskless_start, row.end) for name, row in rows.items()}
        assert offsets["young"] == (-1, 0, 2)
        assert offsets["converted"] == (1, 2, 2)
        assert offsets["tiered"] == (-1, -1, 2), "only topics with a diskless part have these offsets"
