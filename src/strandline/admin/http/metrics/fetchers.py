"""Metrics of what a broker copies from the leaders of partitions that it follows."""

from __future__ import annotations

from typing import Final

from strandline.admin.http.metrics.families import Family, counter, gauge, gauges
from strandline.replication import FetchersStatus

_MANAGER: Final = "kafka_server_replicafetchermanager_"

FETCHERS: Final[tuple[Family[FetchersStatus], ...]] = (
    gauges(
        _MANAGER + "maxlag",
        "The most records that a partition lacks here of what its leader has shown.",
        "clientid",
        lambda s: {"Replica": s.max_lag},
    ),
    gauges(
        _MANAGER + "failedpartitionscount",
        "Partitions that are followed here, and not copied until their metadata changes.",
        "clientid",
        lambda s: {"Replica": s.failed_partitions},
    ),
    gauge(
        "strandline_replica_fetchers",
        "Connections to leaders that are open, or tried to open.",
        lambda s: s.connections,
    ),
    counter(
        "kafka_server_brokertopicmetrics_replicationbytesin",
        "Bytes of record batches that were copied from leaders.",
        lambda s: s.bytes_in,
    ),
)
