"""Metrics that clients pushed to this broker (KIP-714)."""

from __future__ import annotations

from typing import Final

from strandline.admin.http.metrics.families import Family, Samples, counter, counters, gauge
from strandline.server.telemetry import TelemetryStatus


def _pushed(status: TelemetryStatus) -> Samples:
    return {(s.client_id, str(s.instance_id), s.metric, s.attributes): s.value for s in status.samples}


TELEMETRY: Final[tuple[Family[TelemetryStatus], ...]] = (
    Family(
        "gauge",
        "strandline_client_metric",
        "The newest value of a metric that a client pushed, of 100 clients and 250 values of each at most.",
        ("client_id", "instance", "metric", "attributes"),
        _pushed,
        {},
    ),
    gauge(
        "kafka_server_clientmetrics_clientmetricsinstancecount",
        "Clients that have asked for their subscription or have pushed, and are not silent for long.",
        lambda s: s.instances,
    ),
    counters(
        "strandline_client_metric_pushes",
        "Pushes of clients, by how they ended: accepted, or the error.",
        "result",
        lambda s: s.pushes,
    ),
    counter(
        "strandline_client_metrics_dropped",
        "Values that clients pushed and that are not shown, since there are too many.",
        lambda s: s.dropped_samples,
    ),
)
