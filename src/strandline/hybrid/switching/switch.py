"""One partition of a topic that is diskless, on the broker that has its log: what has become of its switch.

A state machine: `stages` has the stages and the legal moves. Its methods say what has happened; what follows from that
for the log (sealed or not) and for clients (`served`) is done here, and nobody else assigns anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from strandline.controlplane import DisklessLog, MigrationState
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Classic
from strandline.hybrid.parts.unsettled import UnsettledPart
from strandline.hybrid.switching.stages import (
    MOVES,
    PENDING,
    PlainStage,
    Stage,
    StageData,
    SwitchedParts,
    WhileDraining,
    WhileSealed,
    WhileSwitched,
    WhileUnknown,
    WithBoundary,
)
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, TopicIdPartition
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager.prefix import PrefixStatus


class PartitionSwitch:
    """See the module. Belongs to the event loop; `TopicSwitches` decides what happens to it.

    A method that would be an illegal move raises RuntimeError, and changes nothing.
    """

    __slots__ = ("__weakref__", "_at", "_classic", "_epoch", "_log", "_problem", "_replica", "_undecided", "_unsettled")

    def __init__(self, classic: Classic) -> None:
        self._classic = classic
        self._replica: Partition = classic.part.replica
        self._unsettled = UnsettledPart(self._replica)
        self._undecided = ServedPartition(self._unsettled)
        self._at: StageData = PlainStage(Stage.CLASSIC)
        self._epoch: LeaderEpoch = self._replica.leader_epoch
        self._log: DisklessLog | None = None
        self._problem = ""

    # What is known of it

    @property
    def classic(self) -> Classic:
        """The partition as it was before the switch; below the boundary it stays like that."""
        return self._classic

    @property
    def replica(self) -> Partition:
        """The replica on this broker."""
        return self._replica

    @property
    def id(self) -> TopicIdPartition:
        return self._replica.id

    @property
    def stage(self) -> Stage:
        """Where it stands."""
        return self._at.stage

    @property
    def at(self) -> StageData:
        """The same with what belongs to the stage."""
        return self._at

    @property
    def is_pending(self) -> bool:
        """Whether it is to be switched, and has no boundary yet."""
        return self._at.stage in PENDING

    @property
    def has_boundary(self) -> bool:
        """Whether it has its boundary, although perhaps it cannot be served yet."""
        return self._at.stage in {Stage.BOUNDARY_KNOWN, Stage.SWITCHED}

    @property
    def epoch(self) -> LeaderEpoch:
        """The leader epoch in which the stage holds, unless it is SWITCHED: that holds in all of them."""
        return self._epoch

    @property
    def log(self) -> DisklessLog | None:
        """The control plane's, as it was last read."""
        return self._log

    @property
    def parts(self) -> SwitchedParts | None:
        """Both parts, once it is SWITCHED."""
        return self._at.parts if isinstance(self._at, WhileSwitched) else None

    @property
    def boundary(self) -> Offset:
        """B0; -1 unless it is SWITCHED."""
        return self._at.parts.prefix.end if isinstance(self._at, WhileSwitched) else NO_OFFSET

    @property
    def problem(self) -> str:
        """What keeps it from going on, in a sentence; empty if nothing does."""
        return self._problem or self._why_unsettled()

    def _why_unsettled(self) -> str:
        trouble = self._unsettled.problem if self.served is self._undecided else None
        return "" if trouble is None else str(trouble)

    @property
    def served(self) -> ServedPartition:
        """What clients are served with."""
        match self._at:
            case WhileSwitched(parts=parts):
                return parts.served
            case WhileUnknown() | WithBoundary():
                return self._undecided
            case _:
                return self._classic.served

    @property
    def has_prefix(self) -> bool:
        """Whether something may be left to do below the boundary."""
        return self.parts is not None and self.state is not MigrationState.DISKLESS_ONLY

    @property
    def is_outdated(self) -> bool:
        """Whether more of its log was converted since the control plane was asked about it."""
        if self._log is None or not isinstance(self._at, WhileSwitched):
            return False
        return self._at.parts.newest.read_boundary > self._log.diskless_start_offset

    @property
    def state(self) -> MigrationState:
        """The control plane's, as far as it is known here."""
        if self._log is None or self._log.diskless_log_start_offset < 0:
            return MigrationState.MIGRATING
        return self._log.migration_state

    # What the metadata and the control plane say

    def epoch_began(self) -> None:
        """This broker leads the partition in another epoch, in which nothing is known yet."""
        self._ask_again()

    def released(self) -> None:
        """The topic is not to be diskless any more: the partition is an ordinary one."""
        self._take_records(Stage.RELEASED)
        self._classic.part.settled_epoch = self._replica.leader_epoch

    def not_answered(self, trouble: StrandlineError) -> None:
        """The control plane could not be asked."""
        self._unsettled.problem = trouble

    def learned(self, log: DisklessLog | None) -> None:
        """This is what the control plane has of the partition; None if nothing."""
        self._log = log

    def no_boundary(self) -> None:
        """There is none in this epoch, and none is being set: it takes records as before."""
        self._take_records(Stage.CLASSIC)

    def boundary_known(self, log: DisklessLog) -> None:
        """There is one."""
        self._move(WithBoundary(self._sealed_at))
        self._log = log

    def store_closed(self, why: StrandlineError | None) -> None:
        """What is behind the boundary cannot be served until the object store is open."""
        self._unsettled.problem = why

    def joined(self, parts: SwitchedParts) -> float | None:
        """Both parts can be served as one log. Returns when writers were shut out, if they were for the switch.

        Appends that were held go on behind the boundary.
        """
        since = self._sealed_at
        self._move(WhileSwitched(parts, is_copying=self.state is MigrationState.MIGRATING))
        self._problem = parts.prefix.problem
        for held in self._replica.restrict().take_held():
            held.go_on(parts.newest.appends.append)
        self._seal(f"{self._replica.topic_partition} is diskless from offset {parts.prefix.end} on")
        return since

    def boundary_lost(self) -> None:
        """The control plane does not have the boundary any more."""
        self._ask_again()
        self._log = None

    # What becomes of its turn

    def hindered(self, problem: str) -> None:
        """Something keeps it from going on, in a sentence; empty if that is over."""
        self._problem = problem

    def others_come_first(self) -> None:
        """It is the turn of other topics."""
        self._move(PlainStage(Stage.WAITING))

    def transactions_open(self, held_by: frozenset[int], problem: str) -> None:
        """It has open transactions. `held_by`: producers of those that have made the switch step back."""
        self._move(WhileDraining(held_by))
        self._problem = problem

    def refuse_transactions(self, until: float) -> None:
        """Let no transaction begin before this moment of the monotonic clock: those that are open are waited for."""
        self._forget_holders()
        self._replica.restrict().refuse_new_transactions(until)

    def let_transactions_begin(self) -> None:
        """The switch cannot go on just now: refusing transactions would bring it no further. It drains again later."""
        self._forget_holders()
        if self._replica.gate is not None:
            self._replica.gate.let_transactions_begin()

    def _forget_holders(self) -> None:
        if isinstance(self._at, WhileDraining):
            self._move(WhileDraining())

    def sealed(self, now: float) -> None:
        """Its boundary is about to be set, where the log ends: appends are held, and go on behind it. May be repeated.

        `now`, by the monotonic clock.
        """
        since = self._sealed_at
        self._move(WhileSealed(now if since is None else since))
        self._seal(f"{self._replica.topic_partition} is being switched to diskless", is_brief=True)

    def stepped_back(self, problem: str) -> None:
        """Its boundary cannot be set now: it takes records again, and has another turn."""
        self._take_records(Stage.STEPPED_BACK)
        self._problem = problem

    def boundary_refused(self, problem: str) -> None:
        """The control plane has refused the boundary: it knows something that this broker does not."""
        self._ask_again()
        self._problem = problem

    # What becomes of what is below the boundary

    def prefix_compared(self, prefix: PrefixStatus | None, *, is_copying: bool, problem: str) -> None:
        """This is how much of it is in remote storage, and why not more; None if nothing is copied."""
        if not isinstance(self._at, WhileSwitched):
            raise RuntimeError(f"{self._replica.topic_partition} has no prefix: it is {self._at.stage.name}.")
        self._move(replace(self._at, prefix=prefix, is_copying=is_copying))
        self._problem = problem

    def prefix_recorded(self, state: MigrationState) -> bool:
        """The control plane has taken over this state. True if it was another one before."""
        if self._log is None or self._log.migration_state is state:
            return False
        self._log = replace(self._log, migration_state=state)
        return True

    # Moves

    def _move(self, at: StageData) -> None:
        if at.stage not in MOVES[self._at.stage]:
            raise RuntimeError(
                f"{self._replica.topic_partition} cannot go from {self._at.stage.name} to {at.stage.name}."
            )
        self._at = at

    @property
    def _sealed_at(self) -> float | None:
        match self._at:
            case WhileUnknown(since) | WhileSealed(since) | WithBoundary(since):
                return since
            case _:
                return None

    def _ask_again(self) -> None:
        """Nothing is known, and the log may end at a boundary: it takes no records."""
        self._move(WhileUnknown(self._sealed_at))
        self._epoch = self._replica.leader_epoch
        self._seal(f"The boundary of {self._replica.topic_partition} is not known yet")

    def _seal(self, why: str, *, is_brief: bool = False) -> None:
        """Take no more records, so that the log ends where it does. Clients send them again.

        `is_brief`: appends are held, and go on behind the boundary.
        """
        error = RequestTimedOut(f"{why}. Send the records again.")
        self._replica.restrict().seal(error, is_brief=is_brief)

    def _take_records(self, stage: Stage) -> None:
        self._move(PlainStage(stage))
        self.let_transactions_begin()
        self._replica.unseal()
