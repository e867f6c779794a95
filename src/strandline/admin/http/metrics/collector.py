"""Fills the tables of metric families with one status of the broker."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric

from strandline.admin.http.metrics.broker import BROKER
from strandline.admin.http.metrics.dependencies import DEPENDENCIES
from strandline.admin.http.metrics.diskless import DISKLESS_TIER, DISKLESS_TOPICS
from strandline.admin.http.metrics.tiered import TIERED
from strandline.admin.http.metrics.traffic import TRAFFIC
from strandline.admin.status import StatusSource


class StatusCollector:
    """A Prometheus collector over `StatusSource`; asks for the status once for each scrape."""

    def __init__(self, source: StatusSource) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering does not ask the broker before it can answer."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families of one scrape."""
        status = self._source.status()
        yield from (family.metric(status) for family in (*BROKER, *TRAFFIC, *DEPENDENCIES))
        yield from (family.metric(status.diskless) for family in DISKLESS_TOPICS)
        yield from (family.metric(status.diskless.tier) for family in DISKLESS_TIER)
        yield from (family.metric(status.tiered) for family in TIERED)
