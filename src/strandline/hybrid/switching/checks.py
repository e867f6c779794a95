"""What the controller's broker finds out before a topic may become diskless: about its logs, and about stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from strandline.config import Settings
from strandline.errors import InvalidConfig, LeaderNotAvailable, RequestTimedOut, StrandlineError
from strandline.hybrid.diskless.store_check import check_shared
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.remote.topics import TieredTopics
from strandline.metadata import Images, TopicImage
from strandline.model import BrokerId, Offset, TopicPartition
from strandline.objects import ObjectStoreMisconfigured
from strandline.reads import EARLIEST, LATEST
from strandline.replication import LeaderClient, ReplicaManager
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_ANSWER_SECONDS: Final = 5.0
_NO_REPLICA: Final = -1


class TopicSwitchChecks:
    """`SwitchChecks` over the replicas of this broker, and over the listeners of the others."""

    def __init__(
        self,
        images: Images,
        replicas: ReplicaManager,
        tiered: TieredTopics,
        diskless: DisklessTopics,
        *,
        settings: Callable[[], Settings],
    ) -> None:
        self._images, self._replicas = images, replicas
        self._tiered, self._diskless = tiered, diskless
        self._settings = settings
        self._node_id = settings().cluster.node_id
        self._listener = settings().network.inter_broker_listener

    def tiered_problem(self) -> str | None:
        return self._tiered.storage.trouble_of(self._node_id)

    def diskless_problem(self, topic: str) -> StrandlineError | None:
        try:
            check_shared(self._settings(), self._images.image.brokers)
        except ObjectStoreMisconfigured as error:
            reason = str(error)
            return InvalidConfig(f"diskless.enable=true cannot be used for {topic}: {reason}")
        return self._diskless.why_not_creatable(topic, {"diskless.enable": "true"})

    async def non_empty_partitions(self, topic: TopicImage) -> Sequence[int]:
        found = set(self._non_empty_here(topic))
        by_leader: dict[BrokerId, list[int]] = {}
        for partition in topic.partitions:
            if partition.leader != self._node_id:
                by_leader.setdefault(partition.leader, []).append(partition.partition)
        for leader, partitions in by_leader.items():
            try:
                found.update(await self._non_empty_there(topic.name, partitions))
            except LeaderNotAvailable as error:
                raise RequestTimedOut(
                    f"Whether {topic.name} has records cannot be asked of broker {leader}, which leads partition "
                    f"{partitions[0]}. {error} Try again when it answers."
                ) from error
        return sorted(found)

    def _non_empty_here(self, topic: TopicImage) -> Iterator[int]:
        for partition in topic.partitions:
            if partition.leader == self._node_id:
                log = self._replicas.find(topic.name, partition.partition).log
                if log.log_start_offset < log.log_end_offset:
                    yield partition.partition

    async def _non_empty_there(self, topic: str, partitions: Sequence[int]) -> Sequence[int]:
        """Partitions that one other broker leads."""
        client = LeaderClient(
            TopicPartition(topic, partitions[0]),
            self._images,
            listener=self._listener,
            client_id=f"broker-{self._node_id}-switch-checks",
        )
        try:
            starts = await self._offsets(client, topic, partitions, EARLIEST)
            ends = await self._offsets(client, topic, partitions, LATEST)
        finally:
            client.close()
        return [number for number in partitions if starts[number] < ends[number]]

    async def _offsets(
        self, client: LeaderClient, topic: str, partitions: Sequence[int], timestamp: int
    ) -> dict[int, Offset]:
        wanted = [ListOffsetsPartition(partition_index=number, timestamp=timestamp) for number in partitions]
        request = ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            topics=[ListOffsetsTopic(name=topic, partitions=wanted)],
            timeout_ms=int(_ANSWER_SECONDS * 1000),
        )
        answer = await client.ask(ApiKey.LIST_OFFSETS, request, within=_ANSWER_SECONDS)
        offsets = {}
        for found in answer.topics[0].partitions:
            if found.error_code != ErrorCode.NONE:
                raise LeaderNotAvailable(
                    f"It answers {ErrorCode(found.error_code).name} for {topic}-{found.partition_index}."
                )
            offsets[found.partition_index] = found.offset
        return offsets
