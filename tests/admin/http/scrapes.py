"""Reads `/metrics` of a broker process."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.broker import BrokerProcess


def scrape(broker: BrokerProcess) -> dict[tuple[str, ...], float]:
    """The samples, by name and the values of their labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(httpx.get(f"{broker.http}/metrics", timeout=30).text)
        for sample in family.samples
    }
