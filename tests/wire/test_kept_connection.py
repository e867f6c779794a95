"""The connection to a broker that changes, or is not worth waiting for any more."""

from __future__ import annotations

import asyncio

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.kept_connection import BrokerAddress, BrokerUnreachable, KeptConnection
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.wire.listening import listening_with

REQUEST = AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)


async def test_a_broker_that_is_not_waited_for_any_more_has_not_answered() -> None:
    asked = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        asked.set()
        await reader.read()

    async with listening_with(say_nothing) as port:
        kept = KeptConnection("test", lambda: "cluster")
        target = BrokerAddress(1, "127.0.0.1", port)
        asking = [
            asyncio.create_task(kept.ask(target, ApiKey.ALLOCATE_PRODUCER_IDS, REQUEST, within=3600.0))
            for _ in range(2)
        ]
        await asyncio.wait_for(asked.wait(), 20)
        assert not any(task.done() for task in asking)
        kept.give_up()
        for task in asking:
            with pytest.raises(BrokerUnreachable, match="did not answer ALLOCATE_PRODUCER_IDS"):
                await asyncio.wait_for(task, 20)
        kept.give_up()  # nothing waits
        asked.clear()
        again = asyncio.create_task(kept.ask(target, ApiKey.ALLOCATE_PRODUCER_IDS, REQUEST, within=3600.0))
        await asyncio.wait_for(asked.wait(), 20)
        assert not again.done(), "later requests have their own time"
        kept.give_up()
        with pytest.raises(BrokerUnreachable):
            await again
        kept.close()
