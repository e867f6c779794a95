"""The diskless partitions of one broker: created for logs of the control plane, closed with their topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from strandline.clock import Clock
from strandline.config.topic import TopicConfig
from strandline.controlplane.values import DisklessLog
from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.diskless.partition import DisklessPartition
from strandline.hybrid.diskless.reads import DisklessReads
from strandline.hybrid.diskless.remote_prefix import RemotePrefix
from strandline.hybrid.diskless.suffix import DisklessSuffix
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.tier_reads import TierReads
from strandline.metadata.image import TopicImage
from strandline.model import BrokerId, TopicIdPartition


class DisklessPartitions:
    """By topic and number. They take appends and serve reads while they are here, also as parts of other partitions."""

    def __init__(
        self, node_id: BrokerId, *, topic_config: Callable[[str], TopicConfig], tiered: TieredTopics, clock: Clock
    ) -> None:
        """`tiered` has what is in remote storage: older records of switched topics, and converted ones."""
        self._node_id, self._topic_config, self._tiered, self._clock = node_id, topic_config, tiered, clock
        self._reads: DisklessReads | None = None
        self.tier_reads = TierReads()
        self.by_key: dict[tuple[str, int], DisklessPartition] = {}
        self.suffixes: dict[tuple[str, int], DisklessSuffix] = {}
        """Those that were classic before, whose log is not here, and that may have records below B0 or a new B0."""
        self.without_log: dict[tuple[str, int], DisklessSuffix] = {}
        """Those that were classic before, and whose log should be here: it is lost, or its directory is."""
        self.version = 0
        """Changes whenever an answer of `may_move` may change."""

    def add(
        self, topic: TopicImage, key: TopicIdPartition, tier: DisklessTier, log: DisklessLog, *, is_joined: bool = False
    ) -> DisklessPartition:
        """The partition over a log. `is_joined`: this broker has the local log before it, and serves both together."""
        name, boundary = key.topic_partition, log.diskless_log_start_offset
        limits = TopicLimits.of(self._topic_config(name.topic))
        if self._reads is None:
            self._reads = DisklessReads(tier.reader, self.tier_reads, self._clock)
        converted = ConvertedLog(key, boundary, log.diskless_log_start_epoch, tier.reader, self._tiered)
        if boundary > 0 and not is_joined:
            partition = self._suffix(key, tier, self._reads, converted, limits, log)
        else:
            partition = DisklessPartition(
                name, key.topic_id, tier, reads=self._reads, converted=converted, limits=limits, clock=self._clock
            )
        image = topic.partitions[name.partition]
        partition.follow(image)
        if isinstance(partition, DisklessSuffix) and self._node_id in image.replicas:
            self.without_log[name] = partition
            partition.is_log_lost = True
        if log.diskless_start_offset > 0:
            tier.reader.learn(log)
        self.by_key[name] = partition
        self.version += 1
        return partition

    def _suffix(
        self,
        key: TopicIdPartition,
        tier: DisklessTier,
        reads: DisklessReads,
        converted: ConvertedLog,
        limits: TopicLimits,
        log: DisklessLog,
    ) -> DisklessPartition:
        boundary = log.diskless_log_start_offset
        suffix = DisklessSuffix(
            key.topic_partition,
            key.topic_id,
            tier,
            prefix=RemotePrefix(key, boundary, log.diskless_log_start_epoch, tier.reader, self._tiered),
            reads=reads,
            converted=converted,
            limits=limits,
            clock=self._clock,
        )
        suffix.is_whole, suffix.state = log.log_start_offset >= boundary, log.migration_state
        self.suffixes[key.topic_partition] = suffix
        return suffix

    # Which broker clients are sent to

    def may_move(self, topic: str, partition: int) -> bool:
        """Whether any broker can serve a partition. If this one does not know its boundary yet, nothing is changed."""
        served = self.by_key.get((topic, partition))
        if isinstance(served, DisklessSuffix):
            return served.is_whole
        return served is not None and not served.has_prefix

    def found_whole(self, suffix: DisklessSuffix, *, is_whole: bool) -> None:
        """Any broker can serve all of this partition, or not any more."""
        suffix.is_whole = is_whole
        self.version += 1

    def settled(self, suffix: DisklessSuffix) -> None:
        """Nothing is left below the boundary of this partition, and it stays where it is: there are records behind."""
        if self.suffixes.get(suffix.topic_partition) is suffix:
            del self.suffixes[suffix.topic_partition]
        suffix.prefix.close()

    def remove(self, topic: TopicImage) -> Iterator[DisklessPartition]:
        """Close the partitions of a topic that was deleted, and return them."""
        for image in topic.partitions:
            partition = self.by_key.get((topic.name, image.partition))
            if partition is not None and partition.id.topic_id == topic.topic_id:
                self.drop(partition, UnknownTopicOrPartition(f"The topic {topic.name} was deleted."))
                yield partition

    def drop(self, partition: DisklessPartition, error: StrandlineError) -> None:
        """Close one of them, for this reason."""
        name = partition.topic_partition
        del self.by_key[name]
        self.suffixes.pop(name, None)
        self.without_log.pop(name, None)
        self.version += 1
        partition.close(error)

    def refresh_limits(self, topics: Iterable[TopicImage] | None) -> None:
        """Settings of these topics have changed (None: of all)."""
        keys = (
            self.by_key if topics is None else ((one.name, at) for one in topics for at in range(len(one.partitions)))
        )
        for key in keys:
            partition = self.by_key.get(key)
            if partition is not None:
                partition.limits = TopicLimits.of(self._topic_config(key[0]))

    def close(self, error: StrandlineError) -> None:
        """The broker stops."""
        for partition in self.by_key.values():
            partition.close(error)
