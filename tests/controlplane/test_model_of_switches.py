"""The control plane against dictionaries, as in `test_model`, while topics are switched from classic to diskless."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from strandline.controlplane import FindBatches, MigrationState, Refusal
from strandline.model import TopicIdPartition
from tests.controlplane.making import OTHER_TOPIC, TOPIC
from tests.controlplane.switching import abort, boundary, producer, progress, request
from tests.controlplane.test_model import PARTITIONS, ControlPlaneAgainstModel, Log, partitions
from tests.postgres import start_postgres

STATES = list(MigrationState)
topics = st.sampled_from([TOPIC, OTHER_TOPIC])
epochs = st.integers(0, 3)


@dataclass
class Switch:
    """A switch that was requested."""

    position: int
    partitions: int
    is_aborted: bool = False


@dataclass
class SwitchedLog(Log):
    """A log that was classic."""

    boundary_epoch: int = 0
    state: MigrationState = MigrationState.MIGRATING
    tiered_high: int = -1
    producers: dict[int, tuple[int, list[tuple[int, int, int]]]] = field(default_factory=dict)


class SwitchesAgainstModel(ControlPlaneAgainstModel):
    """Also requests, aborts, boundaries, resets and reports about prefixes."""

    def __init__(self) -> None:
        super().__init__()
        self.switches: dict[UUID, Switch] = {}
        self.last_position = 0

    def is_switched(self, partition: TopicIdPartition) -> bool:
        switch = self.switches.get(partition.topic_id)
        return switch is not None and partition.partition < switch.partitions

    def switching(self) -> set[UUID]:
        return {topic_id for topic_id, switch in self.switches.items() if not switch.is_aborted}

    def boundaries(self, topic_id: UUID, below: int) -> dict[int, Log]:
        """Of the first partitions of a topic: those that have a log."""
        return {
            key.partition: log for key, log in self.logs.items() if key.topic_id == topic_id and key.partition < below
        }

    @rule(topic_id=topics, count=st.integers(1, 2), is_flagged=st.booleans())
    def request_switch(self, topic_id: UUID, count: int, is_flagged: bool) -> None:
        logs = self.boundaries(topic_id, 99)
        count = max([count, *(number + 1 for number in logs)])  # a topic has at least the partitions that have logs
        position = self.run(request(self.plane, topic_id, count, is_flagged=is_flagged))
        known = self.switches.get(topic_id)
        if known and known.is_aborted:
            known = None
            del self.switches[topic_id]
        if is_flagged:
            is_needed = any(log.boundary < 0 for log in logs.values())
        else:
            is_needed = sum(log.boundary >= 0 and number < count for number, log in logs.items()) < count
        if known:
            assert position == known.position
        elif is_needed:
            assert position > self.last_position
            self.switches[topic_id] = Switch(position, count)
            self.last_position = position
        else:
            assert position == 0

    @rule(topic_id=topics)
    def abort_switch(self, topic_id: UUID) -> None:
        logs = self.boundaries(topic_id, 99)
        switched = [number for number, log in sorted(logs.items()) if log.boundary >= 0]
        assert self.run(abort(self.plane, topic_id)) == (switched[0] if switched else None)
        if not switched:
            self.logs = {key: log for key, log in self.logs.items() if key.topic_id != topic_id}
            if topic_id in self.switches:
                self.switches[topic_id].is_aborted = True

    @rule(
        partition=partitions,
        offset=st.integers(0, 30),
        start=st.integers(0, 30),
        epoch=epochs,
        slip=st.sampled_from([0, 0, 0, -1]),
        seeds=st.sets(st.integers(1, 2)),
    )
    def set_boundary(
        self, partition: TopicIdPartition, offset: int, start: int, epoch: int, slip: int, seeds: set[int]
    ) -> None:
        switch = self.switches.get(partition.topic_id)
        position = (switch.position if switch else self.last_position) + slip
        entries = [producer(seed, (4, 2, 0)) for seed in sorted(seeds)]
        new = boundary(partition, offset, *entries, position=position, epoch=epoch, log_start=min(start, offset))
        (answer,) = self.run(self.plane.migrations.initialize_diskless_migration([new]))
        expected = self.verdict(partition, offset, epoch, position, seeds)
        assert answer.refusal is expected
        log = self.logs.get(partition)
        if expected is None and (log is None or log.boundary < 0):
            self.logs[partition] = SwitchedLog(
                start=new.log_start_offset,
                end=offset,
                epoch=epoch,
                boundary=offset,
                boundary_epoch=epoch,
                state=STATES[3] if new.log_start_offset == offset else STATES[1],
                producers={seed: (0, [(4, 2, 0)]) for seed in seeds},
            )
            self.finish(partition.topic_id)
        if partition in self.logs:
            assert answer.boundary == self.logs[partition].boundary

    def verdict(
        self, partition: TopicIdPartition, offset: int, epoch: int, position: int, seeds: set[int]
    ) -> Refusal | None:
        switch = self.switches.get(partition.topic_id)
        is_requested = switch is not None and not switch.is_aborted and switch.position == position
        log = self.logs.get(partition)
        if log is None:
            is_fit = is_requested and switch is not None and partition.partition < switch.partitions
            return None if is_fit else Refusal.MIGRATION_NOT_FOUND
        if epoch < getattr(log, "boundary_epoch", 0):
            return Refusal.STALE_LEADER_EPOCH
        if log.boundary >= 0:
            is_same = log.boundary == offset and (log.end > offset or set(log.producers) == seeds)
            return None if is_same else Refusal.BOUNDARY_IS_SET
        return None if is_requested else Refusal.MIGRATION_NOT_FOUND

    def finish(self, topic_id: UUID) -> None:
        switch = self.switches.get(topic_id)
        if switch and not switch.is_aborted:
            logs = self.boundaries(topic_id, switch.partitions)
            done = [log for log in logs.values() if log.boundary >= 0 and self.state(log) in STATES[2:]]
            if len(done) == switch.partitions:
                del self.switches[topic_id]

    @staticmethod
    def state(log: Log) -> MigrationState:
        return log.state if isinstance(log, SwitchedLog) else MigrationState.DISKLESS_ONLY

    @rule(partition=partitions, epoch=epochs)
    def reset(self, partition: TopicIdPartition, epoch: int) -> None:
        answer = self.run(self.plane.migrations.reset_diskless_log_start_offset(partition, epoch))
        log = self.logs.get(partition)
        if log is None:
            assert answer.refusal is Refusal.UNKNOWN_LOG
        elif epoch < getattr(log, "boundary_epoch", 0):
            assert answer.refusal is Refusal.STALE_LEADER_EPOCH
        elif log.end > log.boundary >= 0:
            assert answer.refusal is Refusal.BOUNDARY_IS_SET
        else:
            assert answer.refusal is None
            if log.boundary >= 0:
                self.unset(partition, epoch)

    def unset(self, partition: TopicIdPartition, epoch: int) -> None:
        log = self.logs[partition]
        self.logs[partition] = SwitchedLog(
            start=log.start,
            end=log.end,
            epoch=log.epoch,
            boundary=-1,
            boundary_epoch=epoch,
            tiered_high=getattr(log, "tiered_high", -1),
            producers=log.producers,
        )
        topic_id = partition.topic_id
        if topic_id not in self.switches:
            (position,) = (
                switch.position
                for switch in self.run(self.plane.migrations.topic_migrations())
                if switch.topic_id == topic_id
            )
            assert position > self.last_position
            self.switches[topic_id] = Switch(position, max(self.boundaries(topic_id, 99)) + 1)
            self.last_position = position
        self.switches[topic_id].is_aborted = False

    @rule(
        partition=partitions,
        start=st.integers(0, 40),
        high=st.integers(-1, 40),
        state=st.sampled_from(MigrationState),
        epoch=epochs,
    )
    def report(self, partition: TopicIdPartition, start: int, high: int, state: MigrationState, epoch: int) -> None:
        report = progress(partition, state, log_start=start, tiered=(-1, high), epoch=epoch)
        self.run(self.plane.migrations.record_prefix([report]))
        log = self.logs.get(partition)
        if isinstance(log, SwitchedLog) and log.boundary >= 0 and epoch >= log.boundary_epoch:
            log.start = max(log.start, min(start, log.boundary))
            log.tiered_high = max(log.tiered_high, min(high, log.boundary - 1))
            if STATES.index(state) > STATES.index(log.state):
                log.state = state
                self.finish(partition.topic_id)
            if log.state is MigrationState.DISKLESS_ONLY:
                log.tiered_high = -1

    @rule(topic_id=topics)
    def complete(self, topic_id: UUID) -> None:
        refusal = self.run(self.plane.migrations.complete_migration(topic_id))
        switch = self.switches.get(topic_id)
        if switch is None or switch.is_aborted:
            assert refusal is Refusal.MIGRATION_NOT_FOUND
            return
        logs = self.boundaries(topic_id, switch.partitions).values()
        if sum(log.boundary >= 0 for log in logs) < switch.partitions:
            assert refusal is Refusal.BOUNDARY_IS_UNSET
            return
        assert refusal is None
        del self.switches[topic_id]
        for log in self.boundaries(topic_id, 99).values():
            if isinstance(log, SwitchedLog) and log.state is MigrationState.MIGRATING:
                log.state = MigrationState.HYBRID

    @rule(partition=partitions)
    def delete_topic(self, partition: TopicIdPartition) -> None:
        super().delete_topic(partition)
        self.switches.pop(partition.topic_id, None)

    @precondition(lambda self: any(log.start < log.boundary for log in self.logs.values()))
    @rule(data=st.data())
    def read_prefix(self, data: st.DataObject) -> None:
        partition = data.draw(st.sampled_from([key for key, log in self.logs.items() if log.start < log.boundary]))
        offset = data.draw(st.integers(self.logs[partition].start, self.logs[partition].boundary - 1))
        (found,) = self.run(self.plane.reads.find_batches([FindBatches(partition, offset, 1 << 40)], max_rows=100))
        assert (found.refusal, found.rows) == (Refusal.IN_PREFIX, ())

    @invariant()
    def switches_agree(self) -> None:
        expected = sorted(
            (switch.position, topic_id, switch.partitions)
            for topic_id, switch in self.switches.items()
            if not switch.is_aborted
        )
        found = self.run(self.plane.migrations.topic_migrations())
        assert [(switch.position, switch.topic_id, switch.partitions) for switch in found] == expected
        for switch in found:
            logs = self.boundaries(switch.topic_id, switch.partitions).values()
            is_sealed = sum(log.boundary >= 0 for log in logs) >= switch.partitions
            assert (switch.sealed_at_ms is not None) == is_sealed

    @invariant()
    def states_agree(self) -> None:
        found = self.run(self.plane.migrations.migration_states([TOPIC, OTHER_TOPIC]))
        logs = {log.partition: log for logs in found.values() for log in logs}
        assert logs == self.run(self.plane.reads.logs(PARTITIONS))
        for key, log in self.logs.items():
            assert logs[key].migration_state is self.state(log)
            if isinstance(log, SwitchedLog):
                assert (logs[key].tiered_high_offset, logs[key].diskless_log_start_epoch) == (
                    log.tiered_high,
                    log.boundary_epoch,
                )


class SwitchesOnPostgresAgainstModel(SwitchesAgainstModel):
    """The same on the other database; slower, so fewer times."""

    def url(self) -> str:
        return start_postgres().new_database()


SwitchesAgainstModel.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestSwitchesAgainstModel = SwitchesAgainstModel.TestCase
SwitchesOnPostgresAgainstModel.TestCase.settings = settings(max_examples=3, stateful_step_count=20, deadline=None)
TestSwitchesOnPostgresAgainstModel = SwitchesOnPostgresAgainstModel.TestCase
