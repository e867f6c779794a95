"""Exchanges without a client."""

from __future__ import annotations

from typing import Any, cast

from strandline.server.exchange import Exchange
from strandline.server.times import RequestTimes


def exchange_of(times: RequestTimes, api_key: int, version: int = 3) -> Exchange:
    """A request that has just been counted."""
    exchange = Exchange(cast(Any, None), api_key, version, 0)
    exchange.times = times[api_key]
    exchange.times.versions[version] += 1
    exchange.started_ns = 1_000_000_000
    return exchange
