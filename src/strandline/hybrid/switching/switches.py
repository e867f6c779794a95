"""The switch of classic topics to diskless, on the broker that has their logs.

By level, not by edge: at the start, in each leader epoch and at every change of settings, the replica, the setting
`diskless.enable` and the control plane are compared, and what follows from them is done. A switch that a crash, another
leader or a database that was away has interrupted is taken up where the control plane says that it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from strandline.clock import Clock
from strandline.config import DisklessSettings
from strandline.controlplane import (
    Boundaries,
    BoundaryClaim,
    DisklessLog,
    DisklessLogs,
    TopicMigration,
    trouble_for_clients,
)
from strandline.crash import crash_point
from strandline.errors import StrandlineError
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.kinds import PartitionKinds
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.parts.prefix_here import PrefixHere
from strandline.hybrid.switching.reconciling import Fit, compare, cut_to
from strandline.hybrid.switching.stages import Stage, SwitchedParts
from strandline.hybrid.switching.status import WritePauses
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.hybrid.switching.turns import SwitchTurns
from strandline.model import Offset, TopicIdPartition
from strandline.replication import Partition
from strandline.sql import SqlError
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

BOUNDARY_SECONDS: Final = 1.0
"""How often the control plane is asked for boundaries that are not known."""
_LONGEST_PAUSE_S: Final = 10.0
_MOST_FAILURES: Final = 30  # in a row: more change nothing, and an outage may last for days
_IDLE_S: Final = 3600.0
_LOGS_AT_ONCE: Final = 1000


class TopicSwitches:
    """Holds a `PartitionSwitch` for each replica here whose topic is diskless. A `ReplicaListener`."""

    def __init__(
        self,
        partitions: Partitions,
        diskless: DisklessTopics,
        *,
        boundaries: Boundaries,
        logs: DisklessLogs,
        kinds: PartitionKinds,
        settings: Callable[[], DisklessSettings],
        clock: Clock,
    ) -> None:
        self._partitions, self._diskless = partitions, diskless
        self._boundaries, self._logs = boundaries, logs
        self._kinds, self._settings, self._clock = kinds, settings, clock
        self._turns = SwitchTurns(self, diskless, boundaries, settings=settings, clock=clock)
        self._switches: dict[Partition, PartitionSwitch] = {}
        self._wake = asyncio.Event()
        self._setbacks = Setbacks("finding out where topics became diskless", logger)
        self._failures = 0
        self._first_look = asyncio.Event()
        self.reads = diskless.registry.tier_reads
        self.pauses = WritePauses()

    @property
    def switches(self) -> Collection[PartitionSwitch]:
        """Every replica here that is switched, or is to be; always as it is now."""
        return self._switches.values()

    def find(self, replica: Partition) -> PartitionSwitch | None:
        """Of this replica; None if it is neither switched nor to be."""
        return self._switches.get(replica)

    # Following replicas

    def replica_changed(self, replica: Partition) -> None:
        """See `ReplicaListener`. Called after `Partitions`, so that the classic partition is there."""
        switch = self._switches.get(replica)
        is_wanted = self._kinds.is_diskless(replica.id.topic_id, replica.topic_partition.topic)
        if not is_wanted:
            if switch is not None:
                self._release(switch)
            elif replica.is_leader:
                self._partitions.classic(replica).part.settled_epoch = replica.leader_epoch
            return
        if switch is None:
            switch = self._switches[replica] = PartitionSwitch(self._partitions.classic(replica))
            is_settled = switch.classic.part.settled_epoch == replica.leader_epoch
        else:
            is_settled = switch.epoch == replica.leader_epoch
        if switch.stage is not Stage.SWITCHED and replica.is_leader:
            if not is_settled:
                self._diskless.require_open()
                switch.epoch_began()
                self.serve(switch)
            self._wake.set()

    def replica_removed(self, replica: Partition, *, is_deleted: bool) -> None:
        """See `ReplicaListener`."""
        switch = self._switches.pop(replica, None)
        if switch is not None:
            self._partitions.remove(switch.served.newest)
        if is_deleted and replica.topic_partition.topic in self.pauses.last:
            self.pauses = self.pauses.without(replica.topic_partition.topic)

    def _release(self, switch: PartitionSwitch) -> None:
        """`diskless.enable` is false again, which the controller allows only while there is no boundary."""
        del self._switches[switch.replica]
        switch.released()
        self._partitions.add(switch.classic.served)
        switch.replica.notify_watchers()
        logger.info("%s is not switched to diskless: it goes on as it was", switch.replica.topic_partition)

    def serve(self, switch: PartitionSwitch) -> None:
        """Serve clients with what the stage allows. Requests that wait look again."""
        if self._switches.get(switch.replica) is switch:
            self._partitions.add(switch.served)
            switch.replica.notify_watchers()
            if switch.parts is not None:
                switch.parts.prefix.watchers_changed()  # places of fetch sessions do not watch beyond a seal

    def boundary_lost(self, switch: PartitionSwitch) -> None:
        """The control plane has no boundary any more: it was restored, or has lost commits. What it says counts."""
        logger.error(
            "the control plane has lost the boundary of %s, which was %d",
            switch.replica.topic_partition,
            switch.boundary,
        )
        self._diskless.engine.forget(switch.id)  # records that are in memory are not in the log any more
        switch.boundary_lost()
        self.serve(switch)
        self._wake.set()

    def switched(self, topic: str, partitions: int) -> None:
        """See `SwitchOwner`."""
        longest = self.pauses.last.get(topic, 0.0)
        logger.info("%s: %d partitions became diskless; writers waited %.3f s at most", topic, partitions, longest)
        self._wake.set()  # other topics may have waited for this one

    # The work

    def wake(self) -> None:
        """Something may have changed in the control plane."""
        self._wake.set()

    async def first_look(self, *, within: float) -> None:
        """Return when the control plane was asked for the boundaries once, or after `within` seconds."""
        self._wake.set()
        await self._clock.wait_set(self._first_look, within=within)

    async def run(self) -> None:
        """Find out what is not known, and switch what is due. Endless."""
        try:
            while True:
                await self._clock.wait_set(self._wake, within=self._pause())
                self._wake.clear()
                try:
                    await self._look()
                except SqlError as error:
                    self._failures = min(self._failures + 1, _MOST_FAILURES)
                    self._setbacks.met(error)
                    self._tell_unsettled(error)
                    self._first_look.set()
                    await self._clock.sleep(self._pause())
                    self._wake.set()  # clients wait for the answer: it is asked for without another pause
                else:
                    self._first_look.set()
                    self._failures = 0
                    self._setbacks.over()
        finally:
            await self._turns.close()

    def _pause(self) -> float:
        if not any(self._open_ones()):
            return _IDLE_S
        return min(BOUNDARY_SECONDS * 2.0**self._failures, _LONGEST_PAUSE_S)

    def _open_ones(self) -> Iterable[PartitionSwitch]:
        """Led partitions without a boundary, or whose boundary cannot be served yet."""
        return (
            switch
            for switch in self._switches.values()
            if switch.replica.is_leader and switch.stage is not Stage.SWITCHED
        )

    def _tell_unsettled(self, error: SqlError) -> None:
        trouble = trouble_for_clients(error, "The control plane cannot be asked for it")
        for switch in self._open_ones():
            switch.not_answered(trouble)
            if not self._turns.is_under_way(switch.id.topic_id):
                switch.let_transactions_begin()

    async def _look(self) -> None:
        """Ask the control plane for what is not known, then begin the switches that are due. Raises SqlError."""
        asked = {switch.id: (switch, switch.epoch, switch.stage) for switch in self._open_ones()}
        if not asked:
            return
        self._diskless.require_open()
        migrations = await self._boundaries.topic_migrations()
        requested = {migration.topic_id for migration in migrations}
        logs = await self._ask([switch for switch, _, _ in asked.values()], migrations)
        for key, (switch, epoch, stage) in asked.items():
            # The answer may be older than what has become of the partition meanwhile.
            is_as_asked = self.is_current(switch, epoch) and switch.stage is stage
            if is_as_asked and not self._turns.is_under_way(switch.id.topic_id):
                await self._learn(switch, logs.get(key), is_requested=switch.id.topic_id in requested)
        self._turns.begin(self._pending_by_topic(), migrations)

    def _pending_by_topic(self) -> Mapping[UUID, list[PartitionSwitch]]:
        found: dict[UUID, list[PartitionSwitch]] = {}
        for switch in self._open_ones():
            if switch.is_pending:
                found.setdefault(switch.id.topic_id, []).append(switch)
        return found

    async def _ask(
        self, switches: Sequence[PartitionSwitch], migrations: Sequence[TopicMigration]
    ) -> Mapping[TopicIdPartition, DisklessLog]:
        """The logs that these partitions have in the control plane. Raises SqlError.

        Those that this broker knows nothing of are claimed: an earlier leader, or this broker before its restart, may
        be setting a boundary in a transaction that has not come to its end. Afterwards it has, or is refused.
        """
        positions = {migration.topic_id: migration.position for migration in migrations}
        logs: dict[TopicIdPartition, DisklessLog] = {}
        for first in range(0, len(switches), _LOGS_AT_ONCE):
            page = switches[first : first + _LOGS_AT_ONCE]
            logs.update(await self._logs.logs([switch.id for switch in page]))
            claims = [
                BoundaryClaim(switch.id, positions[switch.id.topic_id], switch.epoch)
                for switch in page
                if switch.stage is Stage.UNKNOWN
                and switch.id.topic_id in positions
                and not _is_set(logs.get(switch.id))
            ]
            logs.update(await self._boundaries.claim_boundaries(claims))
            if claims:
                crash_point("switch.claimed")
        return logs

    def is_current(self, switch: PartitionSwitch, epoch: int) -> bool:
        """See `SwitchOwner`."""
        replica = switch.replica
        return self._switches.get(replica) is switch and replica.is_leader and replica.leader_epoch == epoch

    async def _learn(self, switch: PartitionSwitch, log: DisklessLog | None, *, is_requested: bool) -> None:
        """Take over what the control plane knows of a partition.

        Whether its switch is requested was read before the log. A boundary is set only while it is, so that one whose
        answer was lost is in the log, or will never be.
        """
        switch.learned(log)
        finding = compare(switch.replica.log, log)
        match finding:
            case Fit.NO_BOUNDARY | Fit.NOT_ITS_LOG:
                if log is not None and log.diskless_log_start_epoch > switch.epoch and not _is_set(log):
                    return  # another broker leads the partition, and this one will learn that
                if switch.stage is Stage.BOUNDARY_KNOWN:  # it was there when the object store was not open
                    switch.boundary_lost()
                    self.serve(switch)
                elif switch.stage is Stage.UNKNOWN or (switch.stage is Stage.SEALED and not is_requested):
                    switch.no_boundary()
                    self.serve(switch)
                if finding is Fit.NOT_ITS_LOG:
                    switch.hindered(finding.sentence(switch.replica.log, log))
                return
            case Fit.BOUNDARY_BELOW_START if log is not None and log.high_watermark == log.diskless_log_start_offset:
                await self._reset(switch, log)
                return
            case Fit.ENDS_ABOVE if log is not None:
                logger.warning("%s", finding.sentence(switch.replica.log, log))
                self.join(switch, log, problem=_cut(switch, log.diskless_log_start_offset))
                return
        if log is not None:
            self.join(switch, log, problem=finding.sentence(switch.replica.log, log))

    async def _reset(self, switch: PartitionSwitch, log: DisklessLog) -> None:
        """The boundary is below the start of the log, and nothing was written behind it: it is taken back."""
        epoch, stage = switch.epoch, switch.stage
        answer = await self._boundaries.reset_diskless_log_start_offset(switch.id, epoch)
        if not self.is_current(switch, epoch) or switch.stage is not stage:
            return  # what is known in the new leader epoch is asked for again
        if answer.refusal is not None:
            switch.hindered(f"The boundary of {switch.replica.topic_partition} cannot be taken back: {answer.message}")
            return
        logger.error("%s", Fit.BOUNDARY_BELOW_START.sentence(switch.replica.log, log))
        switch.learned(None)
        switch.no_boundary()
        self.serve(switch)

    def join(self, switch: PartitionSwitch, log: DisklessLog, *, problem: str = "") -> None:
        """The partition has its boundary: serve both parts as one log. Waits for the object store to be open."""
        switch.boundary_known(log)
        newest = self._diskless.join(switch.id, log)
        if newest is None:
            switch.store_closed(self._diskless.engine.why_closed())
            self.serve(switch)
            return
        prefix = PrefixHere(
            switch.classic.part,
            newest,
            log.diskless_log_start_epoch,
            reads=self.reads,
            is_served=lambda: self._settings().inkless_hybrid_read_enabled,
        )
        prefix.problem = problem
        if problem:
            logger.error("%s", problem)
        newest.join(prefix)
        try:
            prefix.follow_log_start(log.log_start_offset)
        except StrandlineError as error:  # it is tried again with every look at the prefix
            logger.warning("the log start of %s cannot be moved: %s", switch.replica.topic_partition, error)
        shut_out_at = switch.joined(SwitchedParts(prefix, newest, ServedPartition(newest)))
        self.serve(switch)
        if shut_out_at is not None:
            seconds = self._clock.monotonic() - shut_out_at
            self.pauses = self.pauses.plus(switch.replica.topic_partition.topic, seconds)


def _is_set(log: DisklessLog | None) -> bool:
    return log is not None and log.diskless_log_start_offset >= 0


def _cut(switch: PartitionSwitch, boundary: Offset) -> str:
    """End the log at the boundary. What is wrong with it afterwards; empty if nothing is."""
    try:
        cut_to(switch.replica.log, boundary)
        crash_point("switch.after_cut")
    except StrandlineError as error:
        return f"{error} Records below the boundary are not served by this broker."
    return ""
