"""The diskless partitions of one broker: created for logs of the control plane, closed with their topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from strandline.clock import Clock
from strandline.config import TopicConfig
from strandline.controlplane import DisklessLog
from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.diskless.reads import RowReads
from strandline.hybrid.diskless.remote_prefix import RemotePrefix
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.prefix_elsewhere import PrefixElsewhere
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.tier_reads import TierReads
from strandline.metadata import TopicImage
from strandline.model import BrokerId, TopicIdPartition


class DisklessPartitions:
    """By topic and number. They take appends and serve reads while they are here, also as parts of other partitions."""

    def __init__(
        self, node_id: BrokerId, *, topic_config: Callable[[str], TopicConfig], tiered: TieredTopics, clock: Clock
    ) -> None:
        """`tiered` has what is in remote storage: older records of switched topics, and converted ones."""
        self._node_id, self._topic_config, self._tiered, self._clock = node_id, topic_config, tiered, clock
        self._reads: RowReads | None = None
        self.tier_reads = TierReads()
        self.by_key: dict[tuple[str, int], DisklessPart] = {}
        self.prefixes: dict[tuple[str, int], PrefixElsewhere] = {}
        """Of those that were classic before, whose log is not here, and that may have records below B0 or a new B0."""
        self.without_log: dict[tuple[str, int], PrefixElsewhere] = {}
        """Of those that were classic before, and whose log should be here: it is lost, or its directory is."""
        self.version = 0
        """Changes whenever an answer of `may_move` may change."""

    def add(
        self, topic: TopicImage, key: TopicIdPartition, tier: DisklessTier, log: DisklessLog, *, is_joined: bool = False
    ) -> DisklessPart:
        """The part over a log. `is_joined`: this broker has the local log before it, and serves both together."""
        name, boundary = key.topic_partition, log.diskless_log_start_offset
        limits = TopicLimits.of(self._topic_config(name.topic))
        if self._reads is None:
            self._reads = RowReads(tier.reader, self.tier_reads, self._clock)
        converted = ConvertedLog(key, boundary, log.diskless_log_start_epoch, tier.reader, self._tiered)
        part = DisklessPart(
            name, key.topic_id, tier, rows=self._reads, converted=converted, limits=limits, clock=self._clock
        )
        image = topic.partitions[name.partition]
        part.follow(image)
        if boundary > 0 and not is_joined:
            prefix = self._join_elsewhere(part, tier, self._reads, log)
            if self._node_id in image.replicas:
                self.without_log[name] = prefix
                prefix.is_log_lost = True
        if log.diskless_start_offset > 0:
            tier.reader.learn(log)
        self.by_key[name] = part
        self.version += 1
        return part

    def _join_elsewhere(
        self, part: DisklessPart, tier: DisklessTier, reads: RowReads, log: DisklessLog
    ) -> PrefixElsewhere:
        boundary = part.boundary
        remote = RemotePrefix(part.id, boundary, log.diskless_log_start_epoch, tier.reader, self._tiered)
        prefix = PrefixElsewhere(remote, part, tier, reads.converted, self._clock)
        prefix.is_whole, prefix.state = log.log_start_offset >= boundary, log.migration_state
        part.join(prefix)
        self.prefixes[part.topic_partition] = prefix
        return prefix

    # Which broker clients are sent to

    def may_move(self, topic: str, partition: int) -> bool:
        """Whether any broker can serve a partition. If this one does not know its boundary yet, nothing is changed."""
        part = self.by_key.get((topic, partition))
        if part is None:
            return False
        return part.older.is_whole if isinstance(part.older, PrefixElsewhere) else not part.has_prefix

    def found_whole(self, prefix: PrefixElsewhere, *, is_whole: bool) -> None:
        """Any broker can serve all of this partition, or not any more."""
        prefix.is_whole = is_whole
        self.version += 1

    def settled(self, prefix: PrefixElsewhere) -> None:
        """Nothing is left below the boundary of this partition, and it stays where it is: there are records behind."""
        if self.prefixes.get(prefix.topic_partition) is prefix:
            del self.prefixes[prefix.topic_partition]
        prefix.close()

    def remove(self, topic: TopicImage) -> Iterator[DisklessPart]:
        """Close the partitions of a topic that was deleted, and return them."""
        for image in topic.partitions:
            partition = self.by_key.get((topic.name, image.partition))
            if partition is not None and partition.id.topic_id == topic.topic_id:
                self.drop(partition, UnknownTopicOrPartition(f"The topic {topic.name} was deleted."))
                yield partition

    def drop(self, part: DisklessPart, error: StrandlineError) -> None:
        """Close one of them, for this reason."""
        name = part.topic_partition
        del self.by_key[name]
        self.prefixes.pop(name, None)
        self.without_log.pop(name, None)
        self.version += 1
        part.close(error)

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
