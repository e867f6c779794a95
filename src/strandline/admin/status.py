"""The status of a broker: the value behind `/readyz`, `/metrics`, `/status` and the status page.

Numbers of a component stay in the status value that the component makes; only sums over several of them are made here.
Imports nothing heavy, so that a broker can build the value without loading the HTTP side or tiers that it does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.admin.load import LoadStatus
from strandline.coordinators.transactions import TransactionsStatus
from strandline.health import HealthStatus
from strandline.hybrid.conversion.progress import ConversionStatus
from strandline.hybrid.conversion.source import TieringSource
from strandline.hybrid.diskless.status import DisklessTierStatus
from strandline.hybrid.remote.status import TieredStatus
from strandline.hybrid.switching.status import MigrationFigures, MigrationSource
from strandline.hybrid.traffic import NO_TRAFFIC, TrafficTotals
from strandline.replication import FetchersStatus
from strandline.server.telemetry import TelemetryStatus

if TYPE_CHECKING:  # a broker without diskless or tiered topics does not load them
    from strandline.admin.partition_rows import PartitionRow
    from strandline.log.cleaning import LogCleanerStatus
    from strandline.remote.manager import PartitionTierStatus

S = TypeVar("S")
T = TypeVar("T")


def read(status: S | None, value: Callable[[S], T], otherwise: T) -> T:
    """A value of something that may be off, or unknown here. Only this function of the package asks whether it is."""
    return otherwise if status is None else value(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """One broker of the cluster, as the metadata image has it."""

    node_id: int
    address: str
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirRow:
    """One log directory of this broker."""

    path: str
    is_online: bool = True
    partitions: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """One topic of which this broker has replicas, or which is diskless: every broker serves those."""

    name: str
    is_diskless: bool = False
    is_tiered: bool = False
    partitions: int = 0
    """Local replicas; of a diskless topic, the partitions that this broker serves."""
    bytes: int = 0
    """Of the local logs; of a diskless topic, of the partitions whose clients are sent here."""
    traffic: TrafficTotals = NO_TRAFFIC
    """What clients wrote and read through this broker since it started. Rates follow from two readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group that this broker coordinates."""

    group_id: str
    state: str
    topics: tuple[str, ...] = ()
    lag: int = 0
    """Records between committed offsets and the ends of partitions, over partitions whose end is known here."""
    unknown_partitions: int = 0
    """Partitions with committed offsets whose end only other brokers know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessStatus:
    """Diskless topics at one instant."""

    topics: int = 0
    partitions: int = 0
    """Partitions of the cluster that this broker serves: all of them."""
    unserved_partitions: int = 0
    """Partitions whose log in the control plane has not been created yet."""
    tier: DisklessTierStatus | None = None
    """None until the tier is open, which is when there is a diskless topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """One broker at one instant."""

    version: str
    node_id: int
    cluster_id: str
    not_ready_because: tuple[str, ...] = ()
    uptime_s: float = 0.0
    listeners: tuple[str, ...] = ()
    controller_id: int = -1
    controller_epoch: int = -1
    metadata_offset: int = -1
    brokers: tuple[BrokerRow, ...] = ()
    topics: int = 0
    partitions: int = 0
    local_partitions: int = 0
    led_partitions: int = 0
    under_replicated_partitions: int = 0
    under_min_isr_partitions: int = 0
    unclean_elections: int = 0
    isr_expands: int = 0
    isr_shrinks: int = 0
    offline_partitions: int = 0
    leaderless: tuple[str, ...] = ()
    """Which partitions have no leader, and what that means: sentences."""
    clock_problem: str = ""
    """A sentence if the clock differs from that of the database."""
    partitions_without_preferred_leader: int = 0
    groups: int = 0
    groups_by_state: Mapping[str, int] = field(default_factory=dict)
    transactions: TransactionsStatus = field(default_factory=TransactionsStatus)
    connections: int = 0
    client_memory: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes that are held for clients and their limit, by what holds them."""
    connections_accepted: int = 0
    network_bytes_in: int = 0
    network_bytes_out: int = 0
    cold_reads: int = 0
    """Ranges of segments that had to come from disk before they could be sent."""
    fetch_sessions: int = 0
    fetch_session_partitions: int = 0
    fetch_session_evictions: int = 0
    telemetry: TelemetryStatus = field(default_factory=TelemetryStatus)
    """Metrics that clients have pushed."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests since the start, by the name of the API."""
    cleaner: LogCleanerStatus
    log_dirs: tuple[LogDirRow, ...] = ()
    diskless: DisklessStatus = field(default_factory=DisklessStatus)
    tiered: TieredStatus | None = None
    """None on a broker without tiered storage."""
    migration: MigrationFigures = field(default_factory=MigrationFigures)
    """Partitions led here of topics that are switched to diskless."""
    tiering: ConversionStatus = field(default_factory=ConversionStatus)
    """The conversion of diskless topics into tiered segments."""
    topic_rows: tuple[TopicRow, ...] = ()
    """Sorted by name."""
    traffic: TrafficTotals = NO_TRAFFIC
    """Of all topics since the start, deleted ones included."""
    load: LoadStatus = field(default_factory=LoadStatus)
    fetchers: FetchersStatus = field(default_factory=FetchersStatus)
    """What this broker copies from other leaders."""

    dependencies: tuple[HealthStatus, ...] = ()
    """The database, and the stores that are in use or that the settings name."""

    @property
    def is_ready(self) -> bool:
        """True if the broker is registered and unfenced, and serves clients."""
        return not self.not_ready_because

    @property
    def is_controller(self) -> bool:
        """True if this broker is the active controller."""
        return self.controller_id == self.node_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What `/readyz` says. A part of the status that costs next to nothing: probes ask for it all the time."""

    not_ready_because: tuple[str, ...] = ()
    dependencies: tuple[HealthStatus, ...] = ()
    leaderless: tuple[str, ...] = ()
    """See `BrokerStatus`."""
    clock_problem: str = ""
    """See `BrokerStatus`."""

    @property
    def is_ready(self) -> bool:
        """See `BrokerStatus`."""
        return not self.not_ready_because


class StatusSource(Protocol):
    """Gives the status of the broker."""

    def readiness(self) -> Readiness:
        """Whether it is ready now, and what is away. Looks at partitions once after each change of the metadata."""

    def status(self) -> BrokerStatus:
        """The broker now. Called on the event loop: never blocks, never raises, looks at every topic once."""


class MonitoringSource(Protocol):
    """Gives what is more than a status, on the event loop as well."""

    def group_rows(self) -> Sequence[GroupRow]:
        """Groups that this broker coordinates, the largest lag first. Looks at memory only, at a limited number."""

    async def tiers(self, topic: str) -> Sequence[PartitionTierStatus] | None:
        """The tiered partitions of a topic that are led here; None without tiered storage. Looks at every segment."""

    def partition_rows(self) -> Iterable[PartitionRow]:
        """A row for each partition that counts at this broker, made as they are asked for. There may be thousands."""

    async def refresh(self) -> None:
        """Bring sizes and offsets of diskless partitions up to date if that takes less than a moment. Never raises."""


class TopicSettings(Protocol):
    """Changes settings of topics."""

    async def change(self, topic: str, name: str, value: str, *, validate_only: bool) -> None:
        """Give a setting a value, or only find out whether that would be accepted. Raises StrandlineError."""


class BrokerSource(StatusSource, Protocol):
    """What the HTTP side asks of the broker."""

    @property
    def monitoring(self) -> MonitoringSource:
        """Its measurements."""

    @property
    def migrations(self) -> MigrationSource:
        """The switch of topics to diskless."""

    @property
    def tiering(self) -> TieringSource:
        """The conversion of diskless topics into tiered ones."""

    @property
    def topic_settings(self) -> TopicSettings:
        """Settings of topics, which the active controller changes."""
