"""Metric instruments. Components ask for them here; `admin` renders them for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["CollectorRegistry", "Counter", "Gauge", "Histogram"]
