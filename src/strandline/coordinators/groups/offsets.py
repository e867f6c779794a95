"""Committed offsets of the groups of one shard, those of open transactions included.

The store holds offsets that are committed in the log. Commits under way are known by key only, so that a deletion of
offsets includes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from strandline.coordinators.groups.schemas import OffsetKey, OffsetValue
from strandline.coordinators.groups.values import CommittedOffset, PartitionCommit
from strandline.errors import OffsetMetadataTooLarge, StrandlineError
from strandline.model import ProducerAndEpoch, ProducerId, TopicPartition


class StoredOffset(NamedTuple):
    """A value and the offset of its record: of two commits the later record wins."""

    value: OffsetValue
    record_offset: int


class OffsetStore:
    """Offsets by group, topic and partition: the offsets of a topic are found without a look at all others."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, StoredOffset]]] = {}
        self._count = 0
        self._under_way: dict[str, Counter[TopicPartition]] = {}
        self._transactions: dict[ProducerId, dict[OffsetKey, StoredOffset]] = {}
        self._unstable: dict[str, dict[OffsetKey, set[ProducerId]]] = {}
        """Whose open transactions have an offset, by group: a look at one group must not cost one at all of them."""
        self._epochs: dict[ProducerId, int] = {}
        """Of the producers that have one."""

    # Committed --------------------------------------------------------------------------------------------------

    def get(self, group_id: str, partition: TopicPartition) -> OffsetValue | None:
        stored = self._stored(group_id, *partition)
        return None if stored is None else stored.value

    def _stored(self, group_id: str, topic: str, partition: int) -> StoredOffset | None:
        topics = self._groups.get(group_id)
        offsets = None if topics is None else topics.get(topic)
        return None if offsets is None else offsets.get(partition)

    def of_group(self, group_id: str) -> Iterator[tuple[TopicPartition, OffsetValue]]:
        for topic, offsets in self._groups.get(group_id, {}).items():
            for partition, stored in offsets.items():
                yield TopicPartition(topic, partition), stored.value

    def __len__(self) -> int:
        return self._count

    def put(self, key: OffsetKey, value: OffsetValue, record_offset: int) -> None:
        group_id, topic, partition = key
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        offsets = topics.get(topic)
        if offsets is None:
            offsets = topics[topic] = {}
        if partition not in offsets:
            self._count += 1
        offsets[partition] = StoredOffset(value, record_offset)

    def remove(self, key: OffsetKey) -> None:
        """Delete an offset, also from open transactions."""
        topics = self._groups.get(key.group_id, {})
        offsets = topics.get(key.topic)
        if offsets is not None:
            if offsets.pop(key.partition, None) is not None:
                self._count -= 1
            if not offsets:
                del topics[key.topic]
            if not topics:
                del self._groups[key.group_id]
        for producer_id in list(self._unstable.get(key.group_id, {}).get(key, ())):
            del self._transactions[producer_id][key]
            self._settle(producer_id, key)

    def replace(self, key: OffsetKey, value: OffsetValue) -> None:
        """Another value in the place of a stored one."""
        offsets = self._groups[key.group_id][key.topic]
        offsets[key.partition] = offsets[key.partition]._replace(value=value)

    # Under way --------------------------------------------------------------------------------------------------

    def begin(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Commits of these partitions have been passed to the log."""
        self._under_way.setdefault(group_id, Counter()).update(partitions)

    def end(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """They are committed or have failed."""
        counts = self._under_way[group_id]
        counts.subtract(partitions)
        counts += Counter()  # drops the zeros
        if counts:
            self._under_way[group_id] = counts
        else:
            del self._under_way[group_id]

    def is_idle(self, group_id: str) -> bool:
        """Whether the group has no commit under way and no open transaction."""
        return group_id not in self._under_way and not self.has_open_transaction(group_id)

    def keys_of(self, group_id: str) -> list[OffsetKey]:
        """Every offset of the group that is in the log or under way there."""
        partitions = dict.fromkeys(partition for partition, _ in self.of_group(group_id))
        partitions.update(dict.fromkeys(self._under_way.get(group_id, ())))
        keys = [OffsetKey(group_id, topic, partition) for topic, partition in partitions]
        return list(dict.fromkeys([*keys, *self._unstable.get(group_id, ())]))

    def is_under_way(self, key: OffsetKey) -> bool:
        """Whether a commit of this offset has been passed to the log and is not answered yet."""
        counts = self._under_way.get(key.group_id)
        return counts is not None and TopicPartition(key.topic, key.partition) in counts

    def group_ids(self) -> Iterator[str]:
        """Of all groups that have offsets, and once more of those with open transactions. They may come and go
        meanwhile."""
        yield from list(self._groups)
        yield from list(self._unstable)

    def of_topics(self, topics: Collection[str]) -> Iterator[tuple[OffsetKey, OffsetValue]]:
        """The offsets of all groups in these topics; with those of open transactions where nothing is committed yet."""
        wanted = frozenset(topics)
        for group_id, by_topic in self._groups.items():
            fewer = by_topic.keys() if len(by_topic) < len(wanted) else wanted
            for topic in fewer:
                if topic in wanted:
                    for partition, stored in by_topic.get(topic, {}).items():
                        yield OffsetKey(group_id, topic, partition), stored.value
        for group_id in self._unstable:
            for key, value in self._uncommitted(group_id):
                if key.topic in wanted:
                    yield key, value

    def pieces(self, size: int) -> Iterator[list[tuple[OffsetKey, OffsetValue]]]:
        """Every offset of all groups, in lists of about `size`; with those of open transactions where nothing is
        committed yet. Offsets may change, come and go between two pieces: each is as it is then."""
        gathered: list[tuple[OffsetKey, OffsetValue]] = []
        for group_id in list(self._groups):
            for piece in self.pieces_of(group_id, size):
                gathered += piece
                if len(gathered) >= size:
                    yield gathered
                    gathered = []
        for number, group_id in enumerate(list(self._unstable)):
            gathered += self._uncommitted(group_id)
            if len(gathered) >= size or number % size == size - 1:
                yield gathered
                gathered = []
        if gathered:
            yield gathered

    def pieces_of(self, group_id: str, size: int) -> Iterator[list[tuple[OffsetKey, OffsetValue]]]:
        """The committed offsets of a group, likewise."""
        gathered: list[tuple[OffsetKey, OffsetValue]] = []
        for topic in list(self._groups.get(group_id, ())):
            for partition in list(self._groups.get(group_id, {}).get(topic, ())):
                stored = self._stored(group_id, topic, partition)
                if stored is not None:
                    gathered.append((OffsetKey(group_id, topic, partition), stored.value))
                    if len(gathered) >= size:
                        yield gathered
                        gathered = []
        if gathered:
            yield gathered

    def _uncommitted(self, group_id: str) -> Iterator[tuple[OffsetKey, OffsetValue]]:
        """What open transactions have where nothing is committed yet."""
        for key, producers in list(self._unstable.get(group_id, {}).items()):
            if self._stored(key.group_id, key.topic, key.partition) is None:
                for producer_id in producers:
                    yield key, self._transactions[producer_id][key].value

    # Transactions -----------------------------------------------------------------------------------------------

    def put_pending(self, producer: ProducerAndEpoch, key: OffsetKey, value: OffsetValue, record_offset: int) -> None:
        """A commit inside a transaction: it counts when the transaction is committed."""
        self._transactions.setdefault(producer.producer_id, {})[key] = StoredOffset(value, record_offset)
        self._unstable.setdefault(key.group_id, {}).setdefault(key, set()).add(producer.producer_id)
        self._epochs[producer.producer_id] = producer.epoch

    def end_transaction_before(self, producer: ProducerAndEpoch, *, committed: bool) -> None:
        """End the producer's transaction if it is of an earlier epoch."""
        if self._epochs.get(producer.producer_id, producer.epoch) < producer.epoch:
            self.end_transaction(producer.producer_id, committed=committed)

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """Apply the transaction's offsets, or drop them. A later ordinary commit is not overwritten."""
        self._epochs.pop(producer_id, None)
        for key, pending in self._transactions.pop(producer_id, {}).items():
            self._settle(producer_id, key)
            current = self._stored(key.group_id, key.topic, key.partition)
            if committed and (current is None or pending.record_offset > current.record_offset):
                self.put(key, pending.value, pending.record_offset)

    def _settle(self, producer_id: ProducerId, key: OffsetKey) -> None:
        """The producer's transaction does not have this offset any more."""
        keys = self._unstable[key.group_id]
        keys[key].discard(producer_id)
        if not keys[key]:
            del keys[key]
        if not keys:
            del self._unstable[key.group_id]

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._unstable

    def is_unstable(self, key: OffsetKey) -> bool:
        """Whether an open transaction may still change this offset."""
        return key in self._unstable.get(key.group_id, ())


def check_metadata(commit: PartitionCommit, limit: int) -> StrandlineError | None:
    """Why the metadata of a commit is refused, if it is."""
    if len(commit.metadata) * 2 > limit and len(commit.metadata.encode("utf-16-le")) // 2 > limit:
        return OffsetMetadataTooLarge(f"The metadata is longer than offset.metadata.max.bytes={limit}.")
    return None


def value_of(commit: PartitionCommit, now: int, expires: int) -> OffsetValue:
    """What a commit stores."""
    return OffsetValue(
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        commit_timestamp=now,
        expire_timestamp=expires,
        topic_id=commit.topic_id,
    )


def answer_of(partition: TopicPartition, value: OffsetValue | None) -> CommittedOffset:
    """What a group gets that asks for its offset; None: nothing is stored."""
    if value is None:
        return CommittedOffset(topic=partition.topic, partition=partition.partition)
    return CommittedOffset(
        topic=partition.topic,
        partition=partition.partition,
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        topic_id=value.topic_id,
    )
