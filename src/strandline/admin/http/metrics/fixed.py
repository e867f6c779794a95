"""Numbers of Kafka that are always 0 here, and why. Dashboards show them, and an empty panel looks like a fault."""

from __future__ import annotations

from typing import Final

from strandline.admin.http.metrics.families import Family, Samples, counter
from strandline.admin.status import BrokerStatus


def _never(name: str, text: str) -> Family[BrokerStatus]:
    return counter(name, f"Always 0: {text}", lambda _: 0)


def _none(name: str, text: str) -> Family[BrokerStatus]:
    """A number of replica fetchers, which has a label that never changes."""
    samples: Samples = {("Replica",): 0}
    return Family("gauge", name, f"Always 0: {text}", ("clientid",), lambda _: samples, samples)


FIXED: Final[tuple[Family[BrokerStatus], ...]] = (
    _never("kafka_server_brokertopicmetrics_producemessageconversions", "batches of old formats are refused."),
    _never("kafka_server_brokertopicmetrics_fetchmessageconversions", "batches are sent as they are."),
    _none(
        "kafka_server_replicafetchermanager_minfetchrate",
        "it is not measured. A fetcher that does not get on shows in kafka_server_replicafetchermanager_maxlag.",
    ),
)
