"""One partition of a topic that is diskless, on the broker that has its log: what is known of its switch."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.errors import RequestTimedOut
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Classic
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.prefix_here import PrefixHere
from strandline.hybrid.parts.unsettled import UnsettledPart
from strandline.hybrid.switching.status import MigrationPhase, PartitionMigration
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, TopicIdPartition
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager.prefix import PrefixStatus


class Stage(enum.Enum):
    """How much this broker knows of the boundary."""

    UNKNOWN = enum.auto()
    """The control plane was not asked since this broker leads the partition. It is sealed."""
    PENDING = enum.auto()
    """There is no boundary: the partition is served as a classic one until its turn comes."""
    SWITCHED = enum.auto()
    """There is a boundary, which never changes."""


class Switched(NamedTuple):
    """A partition that has its boundary, on the broker that has its log: both parts, and what serves them as one."""

    prefix: PrefixHere
    newest: DisklessPart
    served: ServedPartition


class PartitionSwitch:
    """See the module. Belongs to the event loop; `TopicSwitches` decides what happens to it."""

    __slots__ = (
        "__weakref__",
        "_unsettled",
        "classic",
        "epoch",
        "held_by",
        "log",
        "phase",
        "prefix",
        "problem",
        "replica",
        "sealed_at",
        "stage",
        "switched",
        "unsettled",
    )

    def __init__(self, classic: Classic) -> None:
        self.classic = classic
        self.replica: Partition = classic.part.replica
        self.stage = Stage.PENDING
        self.epoch: LeaderEpoch = self.replica.leader_epoch
        """The leader epoch in which `stage` holds, unless the partition is SWITCHED."""
        self.log: DisklessLog | None = None
        """The control plane's, as it was last read."""
        self.switched: Switched | None = None
        self.unsettled = UnsettledPart(self.replica)
        self._unsettled = ServedPartition(self.unsettled)
        self.phase: MigrationPhase | None = None
        self.problem = ""
        self.held_by: frozenset[int] = frozenset()
        """Producers whose open transactions have made the switch step back."""
        self.prefix: PrefixStatus | None = None
        self.sealed_at: float | None = None
        """When the seal was set that ends with the boundary, by the monotonic clock."""

    @property
    def id(self) -> TopicIdPartition:
        return self.replica.id

    @property
    def boundary(self) -> Offset:
        """B0; -1 while there is none."""
        return NO_OFFSET if self.switched is None else self.switched.prefix.end

    @property
    def served(self) -> ServedPartition:
        """What clients are served with."""
        match self.stage:
            case Stage.SWITCHED if self.switched is not None:
                return self.switched.served
            case Stage.PENDING:
                return self.classic.served
            case _:
                return self._unsettled

    @property
    def has_prefix(self) -> bool:
        """Whether something may be left to do below the boundary."""
        return self.stage is Stage.SWITCHED and self.state is not MigrationState.DISKLESS_ONLY

    @property
    def is_outdated(self) -> bool:
        """Whether more of its log was converted since the control plane was asked about it."""
        if self.switched is None or self.log is None or self.stage is not Stage.SWITCHED:
            return False
        return self.switched.newest.read_boundary > self.log.diskless_start_offset

    @property
    def state(self) -> MigrationState:
        """The control plane's, as far as it is known here."""
        if self.log is None or self.log.diskless_log_start_offset < 0:
            return MigrationState.MIGRATING
        return self.log.migration_state

    def ask_again(self) -> None:
        """Another leader epoch has begun, in which nothing is known yet."""
        self.epoch = self.replica.leader_epoch
        self.stage, self.phase = Stage.UNKNOWN, None
        self.seal(None, f"The boundary of {self.replica.topic_partition} is not known yet")

    def seal(self, now: float | None, why: str) -> None:
        """Take no more records, so that the log ends where it does. Clients send them again.

        `now` if it is for a moment: appends are held then, and go on behind the boundary.
        """
        if now is not None and self.sealed_at is None:
            self.sealed_at = now
        error = RequestTimedOut(f"{why}. Send the records again.")
        self.replica.restrict().seal(error, is_brief=now is not None)

    def go_on(self) -> None:
        """There is no boundary in this epoch: take records as before."""
        self.stage = Stage.PENDING
        self.sealed_at = None
        self.let_transactions_begin()
        self.replica.unseal()

    def let_transactions_begin(self) -> None:
        """The switch cannot go on just now: refusing transactions would bring it no further. It drains again later."""
        self.held_by = frozenset()
        if self.replica.gate is not None and self.sealed_at is None:
            self.replica.gate.let_transactions_begin()

    def release(self) -> None:
        """The switch is off: the partition is an ordinary one again."""
        self.go_on()
        self.classic.part.settled_epoch = self.replica.leader_epoch

    def _why_unsettled(self) -> str:
        """Why clients have to wait; empty if they do not."""
        trouble = self.unsettled.problem if self.served is self._unsettled else None
        return "" if trouble is None else str(trouble)

    def _tiered_high(self) -> Offset:
        """The newest offset in remote storage: of the prefix as it is now, or converted, as the control plane says."""
        if self.state is MigrationState.DISKLESS_ONLY:
            return NO_OFFSET
        of_prefix = NO_OFFSET if self.prefix is None else self.prefix.tiered_high
        return max(of_prefix, NO_OFFSET if self.log is None else self.log.tiered_high_offset)

    @property
    def _is_prefix_tiered(self) -> bool:
        """`tieringComplete`. Once it is true, only a segment that is missing at the log start makes it false again."""
        prefix, plane = self.prefix, self.log
        if prefix is not None and self.has_prefix and (prefix.is_complete or prefix.tiered_log_start == NO_OFFSET):
            return prefix.is_complete
        return plane is not None and plane.is_prefix_tiered

    def describe(self) -> PartitionMigration:
        """For people."""
        log, plane, prefix = self.replica.log, self.log, self.prefix
        switched = self.switched
        ends = log if switched is None or self.stage is not Stage.SWITCHED else switched.newest
        state = self.state
        copied = 0 if prefix is None else prefix.copied_bytes
        return PartitionMigration(
            partition=self.id.partition,
            state=state,
            phase=self.phase,
            b0=self.boundary,
            tiering_complete=self._is_prefix_tiered,
            problem=self.problem or self._why_unsettled(),
            held_by=tuple(sorted(self.held_by)),
            copied_bytes=copied,
            total_bytes=log.size if prefix is None else prefix.total_bytes,
            log_start=log.log_start_offset if switched is None else switched.newest.log_start_offset,
            local_start=log.local_log_start_offset,
            tiered_high=self._tiered_high(),
            high_watermark=ends.high_watermark,
            local_bytes=log.size,
            remote_bytes=copied,
            diskless_bytes=0 if plane is None else plane.byte_size,
        )
