"""Metrics of what the broker depends on: the database and the object stores."""

from __future__ import annotations

from typing import Final

from strandline.admin.http.metrics.families import Family, gauges
from strandline.admin.status import BrokerStatus
from strandline.health import HealthState

_KINDS: Final = "database, diskless (the object store of diskless topics), remote (the storage of tiered topics)"

DEPENDENCIES: Final[tuple[Family[BrokerStatus], ...]] = (
    gauges(
        "strandline_dependency_up",
        f"1 if it answers, 0 if it is away; absent until the first answer or failure, and if not in use: {_KINDS}.",
        "name",
        lambda s: {one.name: int(not one.is_away) for one in s.dependencies if one.state is not HealthState.UNKNOWN},
    ),
    gauges(
        "strandline_dependency_away_seconds",
        "For how long it has been away, 0 if it is not. `/readyz` and the log say why.",
        "name",
        lambda s: {one.name: one.away_seconds for one in s.dependencies},
    ),
)
