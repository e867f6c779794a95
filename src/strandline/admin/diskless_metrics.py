"""Metrics of diskless topics, made of their status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from strandline.admin.diskless_status import DisklessStatus


def diskless_families(status: DisklessStatus) -> Iterable[Metric]:
    """The families of one scrape."""
    for name, text, gauge in _gauges(status):
        yield GaugeMetricFamily(f"strandline_diskless_{name}", text, value=gauge)
    for name, text, count in _counters(status):
        yield CounterMetricFamily(f"strandline_diskless_{name}", text, value=count)
    yield _counter("batches", "Batches of producers, by what became of them.", "outcome", status.batches)
    yield _gauge("cache_bytes", "Memory of the cache in use.", "part", status.cache_bytes)
    yield _gauge("cache_limit_bytes", "Memory that the cache may use.", "part", status.cache_limits)
    calls = status.object_calls
    yield _counter(
        "object_requests",
        "Requests to the object store, every attempt.",
        "operation",
        {name: call.calls for name, call in calls.items()},
    )
    yield _counter(
        "object_errors",
        "Requests to the object store that failed.",
        "operation",
        {name: call.errors for name, call in calls.items()},
    )
    yield _counter(
        "object_bytes",
        "Bytes to and from the object store.",
        "operation",
        {name: call.bytes for name, call in calls.items()},
    )
    yield _gauge(
        "object_oldest_pending_seconds",
        "How long the oldest request without an answer has been waiting.",
        "operation",
        {name: call.oldest_pending_s for name, call in calls.items()},
    )
    yield _gauge("upkeep_failures", "Failures in a row of background work.", "work", status.upkeep_failures)


def _gauges(status: DisklessStatus) -> Iterable[tuple[str, str, float]]:
    yield "topics", "Diskless topics of the cluster.", status.topics
    yield "partitions", "Diskless partitions that this broker serves.", status.partitions
    yield "unserved_partitions", "Diskless partitions that it does not serve yet.", status.unserved_partitions
    yield "watched_partitions", "Diskless partitions on which consumers wait.", status.watched_partitions
    yield "pending_bytes", "Bytes of batches that are not committed yet.", status.pending_bytes
    yield "oldest_pending_seconds", "How long the oldest of them has been waiting.", status.oldest_pending_s
    yield "uploads_running", "WAL objects being written.", status.uploads_running


def _counters(status: DisklessStatus) -> Iterable[tuple[str, str, float]]:
    yield "wal_files", "WAL objects committed.", status.wal_files
    yield "wal_bytes", "Bytes of WAL objects committed.", status.wal_bytes
    yield "uploads_failed", "WAL objects that could not be written.", status.uploads_failed
    yield "commits_failed", "WAL objects that were written but not committed.", status.commits_failed
    yield "queries", "Queries of readers to the control plane.", status.queries
    yield "object_retries", "Requests to the object store that were sent again.", status.object_retries
    yield "retention_rows_deleted", "Rows deleted by retention.", status.retention_rows_deleted
    yield "retention_bytes_deleted", "Bytes of records deleted by retention.", status.retention_bytes_deleted
    yield "files_deleted", "WAL objects deleted because nothing refers to them.", status.files_deleted
    yield "orphans_found", "WAL objects of uploads that were never committed.", status.orphans_found


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"strandline_diskless_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counter(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"strandline_diskless_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
