"""Which partitions a broker takes records for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.metadata import NewTopic
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.requests import Plan
from strandline.model import NO_LEADER
from strandline.server.coordination import StandIns
from tests.broker import free_port


async def test_a_classic_partition_without_a_leader_is_in_nobodys_hands(tmp_path: Path) -> None:
    """Its replica is here, but takes no record and no transaction marker until it leads again."""
    properties = {
        "strandline.data.dir": str(tmp_path),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        (topic,) = await broker.controller.create_topics([NewTopic(name="t", assignments={0: (broker.node_id,)})])
        assert not isinstance(topic, Exception)
        async with asyncio.timeout(20):
            while ("t", 0) not in broker.partitions.by_key:
                await SystemClock().sleep(0.01)
        stand_ins = StandIns(broker.node_id, broker.partitions)
        assert stand_ins.of(("t", 0)) == broker.node_id
        change = PartitionChangeRecord(partitions=((topic.topic_id, (0,)),), leader=NO_LEADER)
        await broker.controller.write(lambda _: Plan((change,), None))
        assert ("t", 0) in broker.partitions.by_key
        assert stand_ins.of(("t", 0)) is None
        assert stand_ins.of(("t", 1)) is None
