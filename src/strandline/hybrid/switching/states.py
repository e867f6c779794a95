"""`diskless.migration.state` of topics: derived from their flags and from the logs in the control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from strandline.config import TopicConfig
from strandline.config.migration_state import NOT_APPLICABLE, TIERED_ONLY, UNKNOWN
from strandline.controlplane import DisklessLog, MigrationState, MigrationViews
from strandline.metadata import TopicImage
from strandline.sql import SqlError

# How long a request that describes topics waits for a database that does not answer.
_ANSWER_SECONDS: Final = 3.0


def state_of(logs: Sequence[DisklessLog], *, partitions: int, switched: int) -> MigrationState:
    """The state of a topic with `diskless.enable`. Pure.

    Of its `partitions`, those below `switched` become diskless by a switch that is under way; others that have no log
    yet are born diskless.
    """
    found = {log.partition.topic_partition.partition: log for log in logs}
    pending = any(number not in found for number in range(min(switched, partitions)))
    states = {log.migration_state for log in logs if log.diskless_log_start_offset >= 0}
    if pending or MigrationState.MIGRATING in states or any(log.diskless_log_start_offset < 0 for log in logs):
        return MigrationState.MIGRATING
    return MigrationState.HYBRID if MigrationState.HYBRID in states else MigrationState.DISKLESS_ONLY


class TopicMigrationStates:
    """Asks the control plane about topics with `diskless.enable`, and about no others."""

    def __init__(self, views: MigrationViews, topic_config: Callable[[str], TopicConfig]) -> None:
        self._views, self._topic_config = views, topic_config

    async def of_topics(self, topics: Collection[TopicImage]) -> Mapping[str, str]:
        """The state of each topic, by name: one query for all of them, two while a partition has no log."""
        configs = {topic.name: self._topic_config(topic.name) for topic in topics}
        flagged = [topic for topic in topics if configs[topic.name].diskless_enable]
        states = {
            name: TIERED_ONLY if config.remote_storage_enable else NOT_APPLICABLE for name, config in configs.items()
        }
        return {**states, **(await self._of_flagged(flagged) if flagged else {})}

    async def _of_flagged(self, topics: Sequence[TopicImage]) -> dict[str, str]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                logs = await self._views.migration_states([topic.topic_id for topic in topics])
                are_complete = all(len(logs.get(one.topic_id, ())) >= len(one.partitions) for one in topics)
                switched = {} if are_complete else await self._switched()
        except (SqlError, TimeoutError):
            return dict.fromkeys((topic.name for topic in topics), UNKNOWN)
        return {
            topic.name: state_of(
                logs.get(topic.topic_id, ()),
                partitions=len(topic.partitions),
                switched=switched.get(topic.topic_id, 0),
            )
            for topic in topics
        }

    async def _switched(self) -> Mapping[UUID, int]:
        return {one.topic_id: one.partitions for one in await self._views.topic_migrations()}
