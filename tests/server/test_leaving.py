"""The order in which a broker stops."""

from __future__ import annotations

import asyncio
from pathlib import Path

from strandline.broker import Broker
from strandline.config import Settings
from tests.broker import free_port


async def test_a_broker_resigns_as_controller_before_it_stops_reading_requests(tmp_path: Path) -> None:
    properties = {
        "strandline.data.dir": str(tmp_path),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
    }
    loop = asyncio.get_running_loop()
    active_while_deaf: list[bool] = []

    def note(broker: Broker) -> None:
        if broker.network.is_draining:
            active_while_deaf.append(broker.controller.is_active)
        else:
            loop.call_soon(note, broker)

    async with Broker(Settings.from_properties(properties)) as broker:
        assert broker.controller.is_active
        note(broker)
    assert active_while_deaf == [False]
