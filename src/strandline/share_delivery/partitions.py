"""The share partitions of this broker: those that members of share groups fetch, of partitions that it leads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from strandline.clock import Clock
from strandline.config import Settings
from strandline.config.share_group import ShareGroupConfig, share_group_config
from strandline.config.sharing import ShareSettings
from strandline.coordinators.runtime import Timers
from strandline.coordinators.share_states import ShareGroupStates, SharePartitionKey
from strandline.errors import (
    NotLeaderOrFollower,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.metadata import ConfigResource, ConfigResourceType, Images, TopicImage
from strandline.share_delivery.partition import SharePartition, Stored
from strandline.share_delivery.sessions import ShareSession, ShareSessions
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

_CACHED_CONFIGS: Final = 1024


class SharePartitions:
    """Finds share partitions, and follows the metadata by level: each use looks whether this broker still leads."""

    def __init__(
        self,
        partitions: Partitions,
        states: ShareGroupStates,
        images: Images,
        *,
        serves: Callable[[TopicImage, int], bool],
        settings: Callable[[], Settings],
        clock: Clock,
    ) -> None:
        """`serves`: whether clients are sent to this broker for a partition of a topic."""
        self.partitions, self._states, self._images = partitions, states, images
        self._serves, self._settings, self._clock = serves, settings, clock
        self.timers = Timers(clock)
        self.sessions = ShareSessions(lambda: settings().sharing.group_share_max_share_sessions, self._session_ended)
        self._found: dict[SharePartitionKey, SharePartition] = {}
        self._still_writing: dict[SharePartitionKey, SharePartition] = {}
        """The last one that was forgotten while it wrote, or waited for the one before: its successor waits for it."""
        self._tasks = TaskSet()
        self._configs: dict[str, tuple[Mapping[str, str], ShareSettings, ShareGroupConfig]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def config_of(self, group_id: str) -> ShareGroupConfig:
        """The settings in force for a group."""
        overrides = self._images.image.overrides(ConfigResource(ConfigResourceType.GROUP, group_id))
        broker = self._settings().sharing
        kept = self._configs.get(group_id)
        if kept is not None and kept[0] is overrides and kept[1] is broker:
            return kept[2]
        if len(self._configs) >= _CACHED_CONFIGS:
            self._configs.clear()
        config = share_group_config(overrides, broker)
        self._configs[group_id] = (overrides, broker, config)
        return config

    # Finding

    def use(self, key: SharePartitionKey) -> SharePartition:
        """The share partition, loading or loaded. Raises StrandlineError if this broker does not lead the partition."""
        found = self.find(key)
        if found is None:
            found = self._found[key] = SharePartition(
                key,
                self._served(key),
                self._states,
                lambda: self.config_of(key.group_id),
                clock=self._clock,
                timers=self.timers,
                spawn=self.spawn,
                on_fenced=self._forget,
                predecessor=self._still_writing.get(key),
            )
        return found

    def find(self, key: SharePartitionKey) -> SharePartition | None:
        """The share partition, if members have used it. Raises StrandlineError if this broker does not lead it."""
        found = self._found.get(key)
        try:
            served = self._served(key)
        except StrandlineError as error:
            if found is not None:
                self._forget(found)
                found.fence(error)
            raise
        if found is not None and found.failure is not None:
            self._forget(found)
            return None
        if found is not None and (found.served is not served or found.leader_epoch != served.newest.leader_epoch):
            self._forget(found)
            found.fence(NotLeaderOrFollower(f"{served.topic_partition} is in another epoch now."))
            return None
        return found

    def _served(self, key: SharePartitionKey) -> ServedPartition:
        topic = self._images.image.topics_by_id.get(key.topic_id)
        if topic is None:
            raise UnknownTopicId(f"There is no topic with the id of share partition {key}.")
        if topic.partition(key.partition) is None:
            raise UnknownTopicOrPartition(f"Topic {topic.name} has no partition {key.partition}.")
        served = self.partitions.find(topic.name, key.partition)
        served.newest.check_leader()
        if not self._serves(topic, key.partition):
            raise NotLeaderOrFollower(f"Another broker leads {topic.name}-{key.partition}.")
        return served

    def _forget(self, share_partition: SharePartition) -> None:
        key = share_partition.key
        if self._found.get(key) is share_partition:
            del self._found[key]
        if share_partition.is_writing:
            self._still_writing[key] = share_partition
            self.spawn(self._wait_written(share_partition))

    async def _wait_written(self, share_partition: SharePartition) -> None:
        await share_partition.wait_written()
        if self._still_writing.get(share_partition.key) is share_partition:
            del self._still_writing[share_partition.key]

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        """Do something that ends with the share partitions of this broker at the latest."""
        return self._tasks.start(work, name="share-partition")

    # Members that leave

    def end_session(self, session: ShareSession) -> None:
        """The member has ended its session. Harmless if it has another one by now."""
        if self.sessions.peek(session.key) is session:
            self.sessions.end(session.key)
            self._session_ended(session)

    def end_all(self) -> None:
        """Share groups are switched off: no member has a session any more."""
        self.sessions.clear()
        for found in tuple(self._found.values()):
            self._forget(found)
            found.fence(UnsupportedVersion("Share groups were switched off."))

    def _session_ended(self, session: ShareSession) -> None:
        """What the member has acquired is available again, as soon as that is stored."""
        group_id, member = session.key
        stored: list[Stored] = []
        for key in [key for key in self._found if key.group_id == group_id]:
            try:
                found = self.find(key)
                released = found.release(member) if found is not None and found.is_loaded else None
            except StrandlineError as error:
                # The locks end by themselves, here or with the leadership.
                logger.info("records of a member that left %s are not released yet: %s", key, error)
            else:
                stored += [] if released is None else [released]
        self.spawn(self._forget_idle(group_id, stored))

    async def _forget_idle(self, group_id: str, stored: Sequence[Stored]) -> None:
        """A group without members costs nothing here."""
        await asyncio.gather(*stored)
        if not self.sessions.has_group(group_id):
            for found in [found for key, found in self._found.items() if key.group_id == group_id]:
                self._forget(found)
                found.fence(NotLeaderOrFollower(f"No member fetches {found.key} any more."))

    # Life

    async def run(self) -> None:
        """Let locks end in time, until cancelled."""
        try:
            await self.timers.run()
        finally:
            await self._tasks.close()
