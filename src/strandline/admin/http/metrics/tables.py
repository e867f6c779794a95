"""All tables of metrics, and where in a broker's status each finds its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from strandline.admin.http.metrics.aliases import BROKER_ALIASES, LOAD_ALIASES, TIERED_ALIASES
from strandline.admin.http.metrics.broker import BROKER
from strandline.admin.http.metrics.dependencies import DEPENDENCIES
from strandline.admin.http.metrics.diskless import DISKLESS_TIER, DISKLESS_TOPICS
from strandline.admin.http.metrics.families import Family
from strandline.admin.http.metrics.fetchers import FETCHERS
from strandline.admin.http.metrics.fixed import FIXED
from strandline.admin.http.metrics.load import LOAD
from strandline.admin.http.metrics.migration import MIGRATION
from strandline.admin.http.metrics.partitions import PARTITIONS
from strandline.admin.http.metrics.telemetry import TELEMETRY
from strandline.admin.http.metrics.tiered import TIERED
from strandline.admin.http.metrics.tiering import TIERING
from strandline.admin.http.metrics.traffic import TRAFFIC
from strandline.admin.status import BrokerStatus

# Families over the status of the broker, or over a part of it, which is None if it is off.
TABLES: Final[tuple[tuple[tuple[Family[Any], ...], Callable[[BrokerStatus], Any]], ...]] = (
    ((*BROKER, *TRAFFIC, *DEPENDENCIES, *FIXED, *BROKER_ALIASES), lambda status: status),
    ((*LOAD, *LOAD_ALIASES), lambda status: status.load),
    (FETCHERS, lambda status: status.fetchers),
    (DISKLESS_TOPICS, lambda status: status.diskless),
    (DISKLESS_TIER, lambda status: status.diskless.tier),
    ((*TIERED, *TIERED_ALIASES), lambda status: status.tiered),
    (MIGRATION, lambda status: status.migration),
    (TIERING, lambda status: status.tiering),
    (TELEMETRY, lambda status: status.telemetry),
)


class AnyFamily(Protocol):
    """What the reference page says of a family."""

    @property
    def exposed_name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def labels(self) -> Any: ...
    @property
    def text(self) -> str: ...


def all_families() -> Iterator[AnyFamily]:
    """Every family that `/metrics` answers, besides those of the process."""
    for families, _ in TABLES:
        yield from families
    yield from PARTITIONS
