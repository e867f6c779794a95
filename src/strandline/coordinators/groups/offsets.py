"""Committed offsets of the groups of one shard, those of open transactions included.

The store holds offsets that are committed in the log. Commits under way are known by key only, so that a deletion of
offsets includes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from strandline.coordinators.groups.schemas import OffsetKey, OffsetValue
from strandline.coordinators.groups.values import CommittedOffset, PartitionCommit
from strandline.errors import OffsetMetadataTooLarge, StrandlineError
from strandline.model import ProducerAndEpoch, ProducerId, TopicPartition

T = TypeVar("T")


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
        """Producers whose open transactions have an offset, by group: not all groups are looked at for one of them."""
        self._with_topic: dict[str, dict[str, None]] = {}
        """The groups that have committed offsets in a topic: when it is deleted, only these are looked at. No set: that
        has no order, and to list a million of it takes five times as long."""
        self._unstable_of_topic: dict[str, dict[OffsetKey, None]] = {}
        """What open transactions have in a topic, likewise."""
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
            groups = self._with_topic.get(topic)
            if groups is None:
                groups = self._with_topic[topic] = {}
            groups[group_id] = None
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
                self._forget_topic(key.group_id, key.topic)
        for producer_id in list(self._unstable.get(key.group_id, {}).get(key, ())):
            del self._transactions[producer_id][key]
            self._settle(producer_id, key)

    def _forget_topic(self, group_id: str, topic: str) -> None:
        """The group has no committed offset in the topic any more."""
        topics = self._groups[group_id]
        del topics[topic]
        if not topics:
            del self._groups[group_id]
        groups = self._with_topic[topic]
        del groups[group_id]
        if not groups:
            del self._with_topic[topic]

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

    def has(self, key: OffsetKey) -> bool:
        """Whether the offset is in the log or under way there."""
        return self._stored(*key) is not None or self.is_under_way(key) or self.is_unstable(key)

    def all_keys_of(self, group_id: str, *, at_most: int) -> list[OffsetKey] | None:
        """Every offset of the group that is in the log or under way there; None if that are more."""
        partitions = dict.fromkeys(islice((partition for partition, _ in self.of_group(group_id)), at_most + 1))
        partitions.update(dict.fromkeys(islice(self._under_way.get(group_id, ()), at_most + 1)))
        keys = dict.fromkeys(OffsetKey(group_id, topic, partition) for topic, partition in partitions)
        keys.update(dict.fromkeys(islice(self._unstable.get(group_id, ()), at_most + 1)))
        return list(keys) if len(keys) <= at_most else None

    def has_any(self, group_id: str) -> bool:
        """Whether the group has an offset in the log, also of an open transaction."""
        return group_id in self._groups or group_id in self._unstable

    def has_more_than(self, number: int, group_id: str) -> bool:
        """Whether the group has more committed offsets than that."""
        found = 0
        for offsets in self._groups.get(group_id, {}).values():
            found += len(offsets)
            if found > number:
                return True
        return False

    def is_under_way(self, key: OffsetKey) -> bool:
        """Whether a commit of this offset has been passed to the log and is not answered yet."""
        counts = self._under_way.get(key.group_id)
        return counts is not None and TopicPartition(key.topic, key.partition) in counts

    def group_ids(self) -> Iterator[str]:
        """Of all groups that have offsets, and once more of those with open transactions. They may come and go
        meanwhile."""
        yield from list(self._groups)
        yield from list(self._unstable)

    def pieces_of_topics(self, topics: Collection[str], size: int) -> Iterator[list[tuple[OffsetKey, OffsetValue]]]:
        """The offsets of all groups in these topics, in lists of about `size`; with those of open transactions where
        nothing is committed yet. Offsets may change, come and go between two pieces: each is as it is then."""
        return _in_pieces((key for topic in topics for key in self._keys_of_topic(topic)), self._values, size)

    def pieces(self, size: int) -> Iterator[list[tuple[OffsetKey, OffsetValue]]]:
        """Every offset of all groups, likewise. One that is committed and in an open transaction may come twice."""
        return _in_pieces(self._all_keys(), self._values, size)

    def pieces_of(self, group_id: str, size: int) -> Iterator[list[tuple[OffsetKey, OffsetValue]]]:
        """The committed offsets of a group, likewise."""
        return _in_pieces(self._committed_keys(group_id), self._values, size)

    def pieces_before(self, group_id: str, record_offset: int, size: int) -> Iterator[list[OffsetKey]]:
        """The offsets of a group that `is_before` is true of, likewise."""

        def look(key: OffsetKey) -> list[OffsetKey]:
            return [key] if self.is_before(key, record_offset) else []

        return _in_pieces(chain(self._committed_keys(group_id), self._unstable_keys(group_id)), look, size)

    def is_before(self, key: OffsetKey, record_offset: int) -> bool:
        """Whether the committed offset, or without one that of an open transaction, is in a record before that one."""
        stored = self._stored(*key)
        if stored is not None:
            return stored.record_offset < record_offset
        return any(pending.record_offset < record_offset for pending in self._pending(key))

    def is_changing_since(self, key: OffsetKey, record_offset: int) -> bool:
        """Whether a commit of it is under way, or an open transaction has it in a record after that one."""
        return self.is_under_way(key) or any(pending.record_offset > record_offset for pending in self._pending(key))

    def _all_keys(self) -> Iterator[OffsetKey]:
        for group_id in list(self._groups):
            yield from self._committed_keys(group_id)
        for group_id in list(self._unstable):
            yield from self._unstable_keys(group_id)

    def _committed_keys(self, group_id: str) -> Iterator[OffsetKey]:
        for topic in list(self._groups.get(group_id, ())):
            for partition in list(self._groups.get(group_id, {}).get(topic, ())):
                yield OffsetKey(group_id, topic, partition)

    def _unstable_keys(self, group_id: str) -> Iterator[OffsetKey]:
        yield from list(self._unstable.get(group_id, ()))

    def _keys_of_topic(self, topic: str) -> Iterator[OffsetKey]:
        for group_id in list(self._with_topic.get(topic, ())):
            for partition in list(self._groups.get(group_id, {}).get(topic, ())):
                yield OffsetKey(group_id, topic, partition)
        yield from list(self._unstable_of_topic.get(topic, ()))

    def _values(self, key: OffsetKey) -> list[tuple[OffsetKey, OffsetValue]]:
        """The committed one, or what open transactions have."""
        stored = self._stored(*key)
        if stored is not None:
            return [(key, stored.value)]
        return [(key, pending.value) for pending in self._pending(key)]

    def pending_of(self, key: OffsetKey) -> list[OffsetValue]:
        """What open transactions have."""
        return [pending.value for pending in self._pending(key)]

    def _pending(self, key: OffsetKey) -> Iterator[StoredOffset]:
        for producer_id in self._unstable.get(key.group_id, {}).get(key, ()):
            yield self._transactions[producer_id][key]

    # Transactions -----------------------------------------------------------------------------------------------

    def put_pending(self, producer: ProducerAndEpoch, key: OffsetKey, value: OffsetValue, record_offset: int) -> None:
        """A commit inside a transaction: it counts when the transaction is committed."""
        self._transactions.setdefault(producer.producer_id, {})[key] = StoredOffset(value, record_offset)
        self._unstable.setdefault(key.group_id, {}).setdefault(key, set()).add(producer.producer_id)
        self._unstable_of_topic.setdefault(key.topic, {})[key] = None
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
            of_topic = self._unstable_of_topic[key.topic]
            del of_topic[key]
            if not of_topic:
                del self._unstable_of_topic[key.topic]
        if not keys:
            del self._unstable[key.group_id]

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._unstable

    def is_unstable(self, key: OffsetKey) -> bool:
        """Whether an open transaction may still change this offset."""
        return key in self._unstable.get(key.group_id, ())

    # The end ----------------------------------------------------------------------------------------------------

    def let_go(self, size: int) -> Iterator[None]:
        """Forget everything, so many in a step: one at a time, since all that a dictionary holds goes with it."""
        forgotten = 0
        while self._groups:
            group_id, topics = self._groups.popitem()
            while topics:
                topic, offsets = topics.popitem()
                del self._with_topic[topic][group_id]
                while offsets:
                    offsets.popitem()
                    self._count -= 1
                    forgotten += 1
                    if forgotten % size == 0:
                        yield
        while self._transactions:
            producer_id, pending = self._transactions.popitem()
            while pending:
                self._settle(producer_id, pending.popitem()[0])
                forgotten += 1
                if forgotten % size == 0:
                    yield
        self._with_topic.clear()
        self._epochs.clear()


def _in_pieces(keys: Iterator[OffsetKey], look: Callable[[OffsetKey], list[T]], size: int) -> Iterator[list[T]]:
    """What `look` finds: a list after every `size` keys, which may be empty, and one of the rest if there is any."""
    gathered: list[T] = []
    for number, key in enumerate(keys, 1):
        gathered += look(key)
        if number % size == 0:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


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
    """The answer to a group that asks for its offset; None: nothing is stored."""
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
