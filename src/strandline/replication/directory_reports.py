"""Tells the controller in which log directories the replicas of this broker are (AssignReplicasToDirs).

It has to know only where there are several: when one of them fails, other brokers take over what is in it, and nothing
else. Reported is what differs from the metadata, so a broker that starts again has nothing to say. There is no task
while nothing waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import NotLeaderOrFollower, StrandlineError, UnknownTopicId, UnknownTopicOrPartition
from strandline.metadata import UNASSIGNED, DirectoryAssignment, Images, MetadataDelta, MetadataImage, may_replicate
from strandline.model import BrokerId
from strandline.replication.partition import Partition
from strandline.replication.replica_manager import ReplicaManager
from strandline.sql import SqlError
from strandline.tasks import Setbacks, TaskSet

logger = logging.getLogger(__name__)

COLLECTING_SECONDS: Final = 0.1
MOST_PER_REQUEST: Final = 2250
_LONGEST_PAUSE_SECONDS: Final = 10.0

_DECIDED: Final = (UnknownTopicId, UnknownTopicOrPartition, NotLeaderOrFollower)
"""The replica is not this broker's any more: the metadata will say so here, too."""

_Key: TypeAlias = tuple[UUID, int]


class AssignsDirectories(Protocol):
    """The active controller, wherever it is."""

    async def assign_directories(
        self, node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> list[StrandlineError | None]:
        """What has become of each, in their order. One attempt. Raises StrandlineError for all of them."""


class DirectoryReports:
    """A `ReplicaListener`."""

    def __init__(
        self,
        controller: AssignsDirectories,
        images: Images,
        replicas: ReplicaManager,
        *,
        directory_of: Callable[[Partition], UUID | None],
        has_several: bool,
        node_id: BrokerId,
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._controller, self._images, self._replicas = controller, images, replicas
        self._directory_of, self._has_several = directory_of, has_several
        self._node_id, self._broker_epoch, self._clock = node_id, broker_epoch, clock
        self._waiting: dict[_Key, UUID] = {}
        self._tasks = TaskSet()
        self._is_sending = False
        self._setbacks = Setbacks("naming the log directories of replicas", logger)

    def replica_changed(self, partition: Partition) -> None:
        """See `ReplicaListener`. A log that was created is one of the changes."""
        directory = self._directory_of(partition)
        key = (partition.topic_id, partition.topic_partition.partition)
        if directory is None or not self._is_news(key, directory):
            return
        self._waiting[key] = directory
        if not self._is_sending:
            self._is_sending = True
            self._tasks.start(self._send_all(), name="directory-reports")

    def replica_removed(self, partition: Partition, *, is_deleted: bool) -> None:
        """See `ReplicaListener`. What is still to be said of it is said if its directory has failed."""

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata may have directories from now on: then all replicas have to be named."""
        if may_replicate(image) and not may_replicate(delta.old):
            for partition in self._replicas.partitions():
                self.replica_changed(partition)

    def _is_news(self, key: _Key, directory: UUID) -> bool:
        image = self._images.image
        if not may_replicate(image):
            return False
        topic = image.topics_by_id.get(key[0])
        known = None if topic is None else topic.partition(key[1])
        if known is None or self._node_id not in known.replicas:
            return False
        named = known.directory_of(self._node_id)
        return self._has_several if named == UNASSIGNED else named != directory

    async def _send_all(self) -> None:
        pause = COLLECTING_SECONDS
        try:
            while self._waiting:
                await self._clock.sleep(pause)
                self._waiting = {key: one for key, one in self._waiting.items() if self._is_news(key, one)}
                batch = [DirectoryAssignment(*key, one) for key, one in islice(self._waiting.items(), MOST_PER_REQUEST)]
                is_sent = not batch or await self._send(batch)
                pause = COLLECTING_SECONDS if is_sent else min(2 * pause, _LONGEST_PAUSE_SECONDS)
        finally:
            self._is_sending = False

    async def _send(self, batch: Sequence[DirectoryAssignment]) -> bool:
        """Send one request. What it settles does not wait any more."""
        try:
            answers = await self._controller.assign_directories(self._node_id, self._broker_epoch(), batch)
        except (StrandlineError, SqlError) as error:
            self._setbacks.met(error)
            return False
        except Exception:  # the edge of the task: without it no directory would be named any more
            logger.exception("the log directories of replicas could not be named")
            return False
        is_over = True
        for one, answer in zip(batch, answers, strict=True):
            if answer is None or isinstance(answer, _DECIDED):
                self._settled(one)
            else:
                is_over = False
                self._setbacks.met(answer)
        if is_over:
            self._setbacks.over()
        return is_over

    def _settled(self, one: DirectoryAssignment) -> None:
        key = (one.topic_id, one.partition)
        if self._waiting.get(key) == one.directory:
            del self._waiting[key]

    async def close(self) -> None:
        """Send no more."""
        await self._tasks.close()
