"""What a broker remembers of switches is forgotten with their topics."""

from __future__ import annotations

from pathlib import Path

from tests.hybrid.switching.world import switching_broker


async def test_the_write_pause_of_a_deleted_topic_is_forgotten(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as world:
        topic = await world.create("t", records=1)
        await world.flag("t", is_diskless=True)
        await world.switched("t")
        await world.until(lambda: [*world.broker.migrations.figures().pauses.last] == ["t"])
        await world.broker.controller.delete_topics([topic.topic_id])
        await world.until(lambda: not world.broker.migrations.figures().pauses.last)
        assert world.broker.migrations.figures().pauses.seconds > 0
