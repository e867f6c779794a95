"""What a broker tells about itself: the value behind `/readyz`, `/metrics` and the status page.

Imports nothing heavy, so that the broker can build the value without loading the HTTP side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from strandline.admin.diskless_status import DisklessStatus
from strandline.admin.tiered_status import TieredStatus

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager import PartitionTierStatus


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
    """What this broker holds of one topic."""

    name: str
    partitions: int = 0
    bytes: int = 0
    end_offsets: int = 0
    """The sum over the partitions led here: it grows by one with each record, so its rate is that of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """One broker at one instant. Numbers that a broker cannot tell yet are 0."""

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
    offline_partitions: int = 0
    groups: int = 0
    connections: int = 0
    connections_accepted: int = 0
    network_bytes_in: int = 0
    network_bytes_out: int = 0
    cold_reads: int = 0
    """Ranges of segments that had to come from disk before they could be sent."""
    fetch_sessions: int = 0
    fetch_session_partitions: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests since the start, by the name of the API."""
    uncleanable_partitions: int = 0
    max_dirty_percent: float = 0.0
    log_dirs: tuple[LogDirRow, ...] = ()
    diskless: DisklessStatus = field(default_factory=DisklessStatus)
    tiered: TieredStatus = field(default_factory=TieredStatus)
    topic_rows: tuple[TopicRow, ...] = ()

    @property
    def is_ready(self) -> bool:
        """True if the broker is registered and unfenced, and serves clients."""
        return not self.not_ready_because

    @property
    def is_controller(self) -> bool:
        """True if this broker is the active controller."""
        return self.controller_id == self.node_id


class StatusSource(Protocol):
    """Who tells how the broker is."""

    def status(self) -> BrokerStatus:
        """The broker now. Called on the event loop, for each request: cheap, never blocks, never raises."""


class BrokerSource(StatusSource, Protocol):
    """What the HTTP side asks of the broker."""

    def tiers(self, topic: str) -> Sequence[PartitionTierStatus] | None:
        """The tiered partitions of a topic that are led here; None without tiered storage. As cheap as `status`."""
