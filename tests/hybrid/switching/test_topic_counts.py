"""How many topics are in each state: each is counted once in a cluster, whoever leads its partitions."""

from __future__ import annotations

from pathlib import Path

from strandline.controlplane.values import MigrationState
from strandline.metadata import BrokerHeartbeat, NewTopic, TopicImage
from tests.hybrid.switching.world import SwitchingBroker, switching_broker
from tests.metadata.cluster import registration


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


async def test_the_controllers_broker_counts_topics_without_a_leader(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as world:
        controller = world.broker.controller
        epoch = await controller.register_broker(registration(2))

        async def beat(*, want_fence: bool) -> None:
            await controller.broker_heartbeat(
                BrokerHeartbeat(
                    node_id=2,
                    broker_epoch=epoch,
                    current_metadata_offset=1 << 40,
                    want_fence=want_fence,
                    want_shut_down=False,
                )
            )

        await beat(want_fence=False)
        wish = NewTopic(name="waves", assignments={0: (2,)}, configs={"diskless.enable": "true"})
        (topic,) = await controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        assert await count(world) == {}, "broker 2 counts it"
        await beat(want_fence=True)
        assert sum((await count(world)).values()) == 1
