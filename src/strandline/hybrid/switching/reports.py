"""What can be told of the switches of topics: by this broker alone, or by the control plane of whole topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from strandline.config import TopicConfig
from strandline.controlplane import (
    DisklessLog,
    MigrationEnding,
    MigrationState,
    Refusal,
    TopicMigration,
    trouble_for_clients,
)
from strandline.errors import InvalidRequest, UnknownTopicOrPartition
from strandline.hybrid.parts.prefix_elsewhere import PrefixElsewhere
from strandline.hybrid.switching.describing import describe
from strandline.hybrid.switching.states import TopicMigrationStates, state_of
from strandline.hybrid.switching.status import (
    MigrationFigures,
    MigrationPhase,
    PartitionMigration,
    TopicMigrationStatus,
    with_phases,
)
from strandline.hybrid.switching.switches import TopicSwitches
from strandline.metadata import Images, TopicImage
from strandline.model import NO_LEADER, NO_OFFSET, BrokerId, TopicPartition
from strandline.sql import SqlError
from strandline.tasks import next_turn

_TOPICS_AT_ONCE: Final = 500
"""Topics whose states are asked for with one query."""


class SwitchReports:
    """A `MigrationSource`."""

    def __init__(
        self,
        switches: TopicSwitches,
        images: Images,
        migrations: MigrationEnding,
        *,
        topic_config: Callable[[str], TopicConfig],
        without_log: Callable[[], Iterable[PrefixElsewhere]],
        node_id: BrokerId,
    ) -> None:
        """`without_log`: switched partitions of this broker whose log is lost."""
        self._switches, self._images, self._migrations = switches, images, migrations
        self._topic_config, self._without_log, self._node_id = topic_config, without_log, node_id
        self._states = TopicMigrationStates(migrations, topic_config)

    def figures(self) -> MigrationFigures:
        """See `MigrationSource`."""
        switches, reads = self._switches, self._switches.reads
        return MigrationFigures(
            led=self._led(),
            tiered_reads=reads.tiered,
            local_reads=reads.local,
            diskless_reads=reads.diskless,
            pauses=switches.pauses,
        )

    def _led(self) -> dict[TopicPartition, PartitionMigration]:
        """What this broker knows of the partitions that it leads, or would lead if it had their log."""
        led = {
            switch.replica.topic_partition: describe(switch)
            for switch in self._switches.switches
            if switch.replica.is_leader
        }
        for prefix in self._without_log():
            if not prefix.is_gone:
                led[prefix.topic_partition] = _of_lost(prefix)
        return led

    async def count_topics(self) -> Mapping[MigrationState, int]:
        """See `MigrationSource`."""
        image = self._images.image
        leaders = {self._node_id}
        if image.controller_id == self._node_id:
            leaders.add(NO_LEADER)
        mine = [topic for topic in image.topics.values() if topic.partitions and topic.partitions[0].leader in leaders]
        counts = Counter[str]()
        for first in range(0, len(mine), _TOPICS_AT_ONCE):
            counts.update((await self._states.of_topics(mine[first : first + _TOPICS_AT_ONCE])).values())
            await next_turn()
        return {state: counts[state.value] for state in MigrationState}

    async def topic_status(self, topic: str) -> TopicMigrationStatus:
        """See `MigrationSource`."""
        (status,) = await self._describe([self._topic(topic)])
        return status

    async def statuses(self, states: Collection[MigrationState] | None) -> list[TopicMigrationStatus]:
        """See `MigrationSource`."""
        described = await self._describe(sorted(self._images.image.topics.values(), key=lambda topic: topic.name))
        return [one for one in described if one.state is not None and (states is None or one.state in states)]

    async def complete(self, topic: str) -> None:
        """See `MigrationSource`."""
        topic_id = self._topic(topic).topic_id
        try:
            refusal = await self._migrations.complete_migration(topic_id)
        except SqlError as error:
            raise trouble_for_clients(error, f"The switch of {topic} cannot be ended") from error
        if refusal is Refusal.MIGRATION_NOT_FOUND:
            raise InvalidRequest(f"No switch of {topic} is under way.")
        if refusal is not None:
            raise InvalidRequest(
                f"The switch of {topic} cannot be ended: some of its partitions have no boundary yet, and take their "
                "records as before. `strandline migration abort` ends it there."
            )

    def _topic(self, name: str) -> TopicImage:
        topic = self._images.image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"There is no topic {name}.")
        return topic

    async def _describe(self, topics: Sequence[TopicImage]) -> list[TopicMigrationStatus]:
        flagged = [topic for topic in topics if self._topic_config(topic.name).diskless_enable]
        migrations: Sequence[TopicMigration] = ()
        logs: Mapping[UUID, Sequence[DisklessLog]] = {}
        if flagged:
            try:
                migrations = await self._migrations.topic_migrations()
                logs = await self._migrations.migration_states([topic.topic_id for topic in flagged])
            except SqlError as error:
                raise trouble_for_clients(error, "The states of switched topics cannot be read") from error
        waiting = {migration.topic_id: (place, migration.partitions) for place, migration in enumerate(migrations)}
        led: dict[str, list[PartitionMigration]] = {}
        for (topic, _), partition in self._led().items():
            led.setdefault(topic, []).append(partition)
        return [
            with_phases(
                self._of_topic(topic, logs.get(topic.topic_id, ()), *waiting.get(topic.topic_id, (None, 0))),
                led.get(topic.name, ()),
            )
            for topic in topics
        ]

    def _of_topic(
        self, topic: TopicImage, logs: Sequence[DisklessLog], place: int | None, switched: int
    ) -> TopicMigrationStatus:
        config = self._topic_config(topic.name)
        if not config.diskless_enable:
            state = MigrationState.TIERED_ONLY if config.remote_storage_enable else None
            return TopicMigrationStatus(topic=topic.name, state=state)
        known = {log.partition.partition: log for log in logs}
        partitions = tuple(
            _of_partition(image.partition, known.get(image.partition), is_requested=place is not None)
            for image in topic.partitions
        )
        state = state_of(logs, partitions=len(topic.partitions), switched=switched)
        return TopicMigrationStatus(topic=topic.name, state=state, position=place, partitions=partitions)


def _of_partition(partition: int, log: DisklessLog | None, *, is_requested: bool) -> PartitionMigration:
    """As the control plane has it; its leader knows more."""
    if log is None or log.diskless_log_start_offset < 0:
        phase = MigrationPhase.WAITING if is_requested else None
        return PartitionMigration(partition=partition, state=MigrationState.MIGRATING, phase=phase)
    is_copying = log.migration_state is MigrationState.MIGRATING
    return PartitionMigration(
        partition=partition,
        state=log.migration_state,
        phase=MigrationPhase.COPYING_PREFIX if is_copying else None,
        b0=log.diskless_log_start_offset,
        tiering_complete=log.is_prefix_tiered,
        log_start=log.log_start_offset,
        tiered_high=log.tiered_high_offset,
        high_watermark=log.high_watermark,
        diskless_bytes=log.byte_size,
    )


def _of_lost(prefix: PrefixElsewhere) -> PartitionMigration:
    """A partition whose log is not on the broker that should have it. Remote storage may have what was in it."""
    name, start, boundary = prefix.topic_partition, prefix.newer.log_start_offset, prefix.end
    problem = (
        f"The broker of {name} does not have its log, which has the offsets from {start} to {boundary - 1}, and it is "
        "not known that all of them are in remote storage: they are not served. Restore the log directory, or delete "
        f"the records before {boundary} with DeleteRecords."
    )
    return PartitionMigration(
        partition=prefix.id.partition,
        state=prefix.state,
        b0=boundary,
        tiering_complete=prefix.is_whole,
        problem="" if prefix.is_whole else problem,
        log_start=start,
        tiered_high=boundary - 1 if prefix.is_whole else NO_OFFSET,
        high_watermark=prefix.newer.high_watermark,
    )
