"""A broker with so many connections that do nothing."""

from __future__ import annotations

import time
from typing import Final

from bench.asking import Asker, framed, produce_request
from bench.growing.measuring import Growth, Measured, costs, cpu_seconds, each, settle
from bench.systems import StrandlineBroker
from strandline.wire.api import ApiKey

_IDLE_SECONDS: Final = 5.0

_ACCEPT = Growth("accept all connections", "CPU ms")
_MEMORY = Growth("memory for all connections", "MB")
_IDLE = Growth("at rest, one second", "CPU ms")
_PRODUCE = Growth("Produce on another connection", "CPU ms", 0)
_CLOSE = Growth("close all connections", "CPU ms")


def measure(broker: StrandlineBroker, size: int) -> Measured:
    """With `size` connections, each of which has sent one request."""
    broker.start()
    port = int(broker.bootstrap.rpartition(":")[2])
    process = broker.process
    found: dict[Growth, float] = {}
    with Asker(port) as asker:
        asker.create("beside", 1)
        settle(process)
        opened: list[Asker] = []
        with costs(process) as cost:
            opened.extend(Asker(port) for _ in range(size))
            for one in opened:
                one.topic_id("beside")
        found[_ACCEPT] = cost.cpu * 1e3
        found[_MEMORY] = cost.memory / 1e6
        before = cpu_seconds(process.pid)
        time.sleep(_IDLE_SECONDS)
        found[_IDLE] = (cpu_seconds(process.pid) - before) / _IDLE_SECONDS * 1e3
        record = framed(ApiKey.PRODUCE, produce_request("beside"))
        found[_PRODUCE] = each(process, lambda: asker.exchange(record)) * 1e3
        with costs(process) as cost:
            for one in opened:
                one.close()
        found[_CLOSE] = cost.cpu * 1e3
    broker.stop()
    return found
