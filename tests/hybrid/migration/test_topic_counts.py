"""How many topics are in each state: each is counted once in a cluster, whoever leads its partitions."""

from __future__ import annotations

from pathlib import Path

from strandline.controlplane.values import MigrationState
from strandline.metadata import NewTopic, TopicImage
from tests.hybrid.migration.world import SwitchingBroker, switching_broker


async def count(world: SwitchingBroker) -> dict[str, int]:
    return {state.value: topics for state, topics in (await world.broker.migrations.count_topics()).items() if topics}


async def test_topics_are_counted_whatever_made_them_tiered_or_diskless(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as world:
        for name in ("switched", "tiered"):
            await world.create(name, records=1)
        for name, flag in (("born-diskless", "true"), ("classic", "false")):
            wish = NewTopic(name=name, num_partitions=2, replication_factor=1, configs={"diskless.enable": flag})
            (topic,) = await world.broker.controller.create_topics([wish])
            assert isinstance(topic, TopicImage), topic
        await world.broker.diskless.wait_served(["born-diskless"])
        assert await count(world) == {"TIERED_ONLY": 2, "DISKLESS_ONLY": 1}
        await world.flag("switched", is_diskless=True)
        await world.switched("switched")
        assert await count(world) == {"TIERED_ONLY": 1, "MIGRATING": 1, "DISKLESS_ONLY": 1}
        await world.broker.monitoring.refresh()
        assert world.broker.monitoring.topic_states.known[MigrationState.MIGRATING] == 1
