"""Begins the switches of topics whose turn it is, and takes over the answers of the control plane."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from strandline.clock import Clock
from strandline.config import DisklessSettings
from strandline.controlplane import Boundaries, DisklessLog, MigrationState, Refusal, TopicMigration
from strandline.crash import crash_point
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.switching.draining import DrainWindows, drain
from strandline.hybrid.switching.queue import admitted
from strandline.hybrid.switching.sealing import BoundarySetter, Sealed
from strandline.hybrid.switching.stages import Stage
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.hybrid.switching.waiting import wait_until
from strandline.replication import Partition
from strandline.sql import SqlError
from strandline.tasks import Setbacks, TaskSet

logger = logging.getLogger(__name__)

GROUP: Final = 8
"""Partitions that are sealed together: each of them waits for the slowest."""


class SwitchOwner(Protocol):
    """What the turns ask of `TopicSwitches`."""

    def is_current(self, switch: PartitionSwitch, epoch: int) -> bool:
        """Whether this broker still leads the partition in this epoch, and its topic is still to be diskless."""

    def join(self, switch: PartitionSwitch, log: DisklessLog) -> None:
        """The partition has its boundary."""

    def serve(self, switch: PartitionSwitch) -> None:
        """Serve clients with what the stage of the partition allows now."""

    def switched(self, topic: str, partitions: int) -> None:
        """Partitions of a topic have become diskless."""

    def wake(self) -> None:
        """Look again, without waiting for the next time."""


class SwitchTurns:
    """Each topic is switched in a task of its own: none waits for another. Belongs to the event loop."""

    def __init__(
        self,
        owner: SwitchOwner,
        diskless: DisklessTopics,
        boundaries: Boundaries,
        *,
        settings: Callable[[], DisklessSettings],
        clock: Clock,
    ) -> None:
        self._owner, self._diskless, self._settings, self._clock = owner, diskless, settings, clock
        self._setter = BoundarySetter(boundaries, clock)
        self._drains: dict[UUID, DrainWindows] = {}
        self._under_way: set[UUID] = set()
        self._watched: set[UUID] = set()
        self._tasks = TaskSet()
        self._setbacks = Setbacks("setting the boundaries of topics", logger)

    def is_under_way(self, topic_id: UUID) -> bool:
        """Whether partitions of a topic are being sealed."""
        return topic_id in self._under_way

    async def close(self) -> None:
        """Stop. What was sealed is taken up at the next start."""
        await self._tasks.close()
        await self._setter.close()

    def begin(self, pending: Mapping[UUID, Sequence[PartitionSwitch]], migrations: Sequence[TopicMigration]) -> None:
        """Begin the switches of topics whose turn it is. `pending`: partitions without a boundary, by topic."""
        settings = self._settings()
        turns = admitted(
            migrations,
            parallel=settings.inkless_migration_parallel_topics,
            copying_ms=settings.inkless_migration_segment_wait_ms,
        )
        requested = {migration.topic_id: migration.position for migration in migrations}
        self._drains = {topic_id: self._drains.get(topic_id) or DrainWindows() for topic_id in pending}
        for topic_id, waiting in pending.items():
            if topic_id in self._under_way:
                continue
            # Those whose boundary may be set already come first, whatever else is the matter.
            due = [switch for switch in waiting if switch.stage is Stage.SEALED]
            if topic_id not in requested:
                _note_missing_request(waiting)
            elif topic_id not in turns:
                for switch in waiting:
                    if switch.stage is not Stage.SEALED:
                        switch.others_come_first()
            if topic_id in turns and not due and self._can_begin(waiting):
                due = self._drained(topic_id, waiting)
            elif not due:
                self._drains[topic_id].close(self._clock.monotonic())
                _let_transactions_begin(waiting)
            if due and topic_id in requested:
                self._under_way.add(topic_id)
                self._tasks.start(self._switch(topic_id, due, requested[topic_id]), name="topic-switch")

    def _drained(self, topic_id: UUID, waiting: Sequence[PartitionSwitch]) -> list[PartitionSwitch]:
        windows, window_s = self._drains[topic_id], self._settings().inkless_migration_drain_wait_ms / 1000
        drained = drain(windows, waiting, self._clock.monotonic(), window_s)
        if windows.ends_at is not None and len(drained) < len(waiting) and topic_id not in self._watched:
            self._watched.add(topic_id)
            self._tasks.start(self._watch(topic_id, waiting, ends_at=windows.ends_at), name="draining")
        return drained

    async def _watch(self, topic_id: UUID, waiting: Sequence[PartitionSwitch], *, ends_at: float) -> None:
        """Have a topic looked at when its transactions are over, or the window: until then writers are refused.

        In a window none begins where they are over, so that partitions can be waited for one after the other.
        """
        try:
            for switch in waiting:
                await wait_until(switch.replica, _is_drained, self._clock, deadline=ends_at)
        finally:
            self._watched.discard(topic_id)
        self._owner.wake()

    def _can_begin(self, switches: Sequence[PartitionSwitch]) -> bool:
        """Whether what comes after the boundary is there: a sealed log could take no records without it."""
        problem = self._diskless.why_not_writable()
        for switch in switches:
            log = switch.replica.log
            is_empty = log.log_start_offset == log.log_end_offset
            if not (problem or is_empty or log.is_remote):
                switch.hindered(
                    f"{switch.replica.topic_partition} has records and remote.storage.enable is false: set it to true, "
                    "or abort the switch."
                )
            else:
                switch.hindered(problem)
        return not any(switch.problem for switch in switches)

    async def _switch(self, topic_id: UUID, switches: Sequence[PartitionSwitch], position: int) -> None:
        epochs = {switch: switch.epoch for switch in switches}

        def is_wanted(switch: PartitionSwitch) -> bool:
            return self._owner.is_current(switch, epochs[switch]) and switch.is_pending

        try:
            for first in range(0, len(switches), GROUP):
                group = switches[first : first + GROUP]
                for sealed in await self._setter.set(group, position, is_wanted=is_wanted):
                    if is_wanted(sealed.switch):  # else the new leader of the partition asks for itself
                        self._settled(sealed)
        except SqlError as error:
            self._setbacks.met(error)
            for switch in filter(is_wanted, switches):
                switch.hindered(f"The control plane cannot be reached: {error}")
                switch.let_transactions_begin()
        except Exception:
            logger.exception("the switch of a topic has failed, and is tried again")
        else:
            self._setbacks.over()
        finally:
            self._under_way.discard(topic_id)
            switched = sum(switch.has_boundary for switch in switches)
            if switched:
                self._owner.switched(switches[0].replica.topic_partition.topic, switched)

    def _settled(self, sealed: Sealed) -> None:
        """The control plane has answered."""
        switch, answer = sealed.switch, sealed.answer
        name = switch.replica.topic_partition
        match answer.refusal:
            case None:
                self._owner.join(switch, _new_log(sealed))
                crash_point("switch.joined")
            case Refusal.MIGRATION_NOT_FOUND:
                switch.stepped_back("The switch was aborted.")
                self._owner.serve(switch)
            case _:
                logger.warning("the boundary of %s was refused: %s", name, answer.message)
                switch.boundary_refused(answer.message)
                self._owner.serve(switch)


def _is_drained(replica: Partition) -> bool:
    return not replica.has_open_transactions


def _note_missing_request(switches: Iterable[PartitionSwitch]) -> None:
    for switch in switches:
        switch.hindered(
            f"No switch of {switch.replica.topic_partition.topic} is requested, although diskless.enable is true: the "
            "database is damaged, or was restored in part. The partition stays classic, and takes records."
        )


def _let_transactions_begin(switches: Iterable[PartitionSwitch]) -> None:
    for switch in switches:
        switch.let_transactions_begin()


def _new_log(sealed: Sealed) -> DisklessLog:
    """The log as the control plane has it just after the boundary was set.

    Its log start is the one that was reported: that of the local log may have moved since, and is reported again.
    """
    answer, log_start = sealed.answer, sealed.boundary.log_start_offset
    is_empty = log_start == answer.boundary
    return DisklessLog(
        partition=sealed.switch.id,
        log_start_offset=log_start,
        high_watermark=answer.boundary,
        diskless_start_offset=answer.boundary,
        diskless_log_start_offset=answer.boundary,
        diskless_log_start_epoch=answer.leader_epoch,
        migration_state=MigrationState.DISKLESS_ONLY if is_empty else MigrationState.MIGRATING,
        last_epoch=answer.leader_epoch,
    )
