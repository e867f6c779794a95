"""The groups of one partition of `__consumer_offsets`: their state in memory, and the records that change it.

Memory follows the log: a committed offset is visible when its record is committed, and loading the partition again
gives the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from strandline.clock import Clock, Ids
from strandline.config import GroupSettings
from strandline.config.share_groups import DEFAULT_SHARE_SETTINGS, ShareGroupSettings
from strandline.coordinators.groups.classic import ClassicProtocol
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.regular_expressions import TopicMatcher
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordKey
from strandline.coordinators.groups.consumer.service import ConsumerGroupService
from strandline.coordinators.groups.deletion import OngoingDeletions
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.memberships import Memberships
from strandline.coordinators.groups.offsets import OffsetStore, answer_of, check_metadata, value_of
from strandline.coordinators.groups.schemas import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    read_group_value,
    read_key,
    read_offset_value,
    write_offset_key,
    write_offset_value,
)
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.schemas import ShareRecordKey
from strandline.coordinators.groups.share.service import ShareGroupService
from strandline.coordinators.groups.upkeep import OffsetUpkeep
from strandline.coordinators.groups.values import DEFAULT_RETENTION, CommitRequest, CommittedOffset
from strandline.coordinators.runtime import (
    KeyValue,
    ReadBatch,
    Timers,
    TransactionalSink,
    TransactionEnd,
    WriteDone,
    WriteResult,
)
from strandline.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidProducerEpoch,
    StrandlineError,
    UnstableOffsetCommit,
)
from strandline.model import INT64_MAX, NO_TIMESTAMP, ProducerAndEpoch, TopicPartition

# Some milliseconds of work.
GROUPS_PER_STEP: Final = 5_000
MEMBERS_PER_STEP: Final = 200


class GroupShard:
    """One partition's groups and offsets. Synchronous: results of writes come through callbacks."""

    def __init__(
        self,
        sink: TransactionalSink,
        timers: Timers,
        clock: Clock,
        ids: Ids,
        settings: GroupSettings,
        topics: TopicIncarnations,
        matcher: TopicMatcher,
        share_settings: ShareGroupSettings = DEFAULT_SHARE_SETTINGS,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self._topics = topics
        self.offsets = OffsetStore()
        self._sink, self._clock, self._settings = sink, clock, settings
        self.upkeep = OffsetUpkeep(self.groups, self.offsets, topics, sink, clock, settings, self.delete_group)
        self.classic = ClassicProtocol(self.groups, timers, sink, clock, ids, settings)
        self.consumer = ConsumerGroupService(
            self.groups, self.classic, timers, sink, clock, ids, settings, topics, matcher
        )
        self.memberships = Memberships(self.groups, self.classic, self.consumer, sink, settings)
        timeout_ms = settings.offsets_commit_timeout_ms
        self.share = ShareGroupService(
            self.groups, timers, sink, clock, share_settings, topics, commit_timeout_ms=timeout_ms
        )
        self._deletions = OngoingDeletions(
            self.groups, self.offsets, self.upkeep, sink, self.classic, self.consumer, self.share, self._ensure_group
        )

    def __str__(self) -> str:
        return f"{len(self.groups)} groups and {len(self.offsets)} offsets"

    # Loading and unloading ----------------------------------------------------------------------------------------

    def replay(self, batch: ReadBatch) -> None:
        """Apply a batch read from the log. Raises CorruptMessage."""
        if batch.committed is not None:
            self.offsets.end_transaction(batch.producer_id, committed=batch.committed)
            return
        for offset, key, value in batch.records:
            if key is not None:
                self._replay_record(batch, offset, key, value)

    def _replay_record(self, batch: ReadBatch, offset: int, raw_key: bytes, value: bytes | None) -> None:
        key = read_key(raw_key)
        if isinstance(key, OffsetKey):
            if value is None:
                self.offsets.remove(key)
                return
            self._ensure_group(key.group_id)
            if batch.is_transactional:
                producer = ProducerAndEpoch(batch.producer_id, batch.producer_epoch)
                self.offsets.put_pending(producer, key, read_offset_value(value), offset)
            else:
                self.offsets.put(key, read_offset_value(value), offset)
        elif isinstance(key, GroupKey):
            if value is not None:
                self.groups[key.group_id] = ClassicGroup.loaded(key.group_id, read_group_value(value))
            elif isinstance(self.groups.get(key.group_id), ClassicGroup):
                del self.groups[key.group_id]
        elif isinstance(key, ConsumerRecordKey):
            self.consumer.table.replay(key, value)
        elif isinstance(key, ShareRecordKey):
            self.share.table.replay(key, value)

    def prepare(self) -> Iterator[None]:
        """Offsets have groups and ids of topics, and those of topics that went meanwhile end."""
        for number, group_id in enumerate(self.offsets.group_ids(), 1):
            self._ensure_group(group_id)
            if number % GROUPS_PER_STEP == 0:
                yield
        yield from self.upkeep.store_topic_ids()
        yield from self.upkeep.drop_stale()
        yield from self._each(self._repair)

    def loaded(self) -> Iterator[None]:
        """The sessions of the members begin. In steps."""
        return self._each(self._start)

    def _each(self, work: Callable[[Group], int]) -> Iterator[None]:
        """In steps, with all groups that there are now and still are when it is their turn. `work` returns how many
        members it has looked at."""
        groups = members = 0
        group_ids = list(self.groups)
        while group_ids:  # taken out one at a time: to let go of a million at once takes long
            group = self.groups.get(group_ids.pop())
            if group is not None:
                groups, members = groups + 1, members + work(group)
            if groups >= GROUPS_PER_STEP or members >= MEMBERS_PER_STEP:
                groups = members = 0
                yield

    def _repair(self, group: Group) -> int:
        if isinstance(group, ConsumerGroup):
            self.consumer.repair(group)
            return 1 + len(group.members)
        if isinstance(group, ShareGroup):
            self.share.repair(group)
            return 1 + len(group.members)
        return 0

    def _start(self, group: Group) -> int:
        if isinstance(group, ClassicGroup):
            self.classic.start(group)
            return len(group.members)
        if isinstance(group, ConsumerGroup):
            self.consumer.start(group)
            return 1 + len(group.members)
        if isinstance(group, ShareGroup):
            self.share.start(group)
            return 1 + len(group.members)
        return 0

    def unloaded(self, error: StrandlineError) -> Iterator[None]:
        """Another broker coordinates these groups now: waiting members get `error`. In steps."""
        self.consumer.stop(error)
        self.share.table.stop(error)
        groups = members = 0
        while self.groups:
            _, group = self.groups.popitem()
            if isinstance(group, ClassicGroup) and not group.may_be_deleted:
                self.classic.stop(group, error)
                members += 1 + len(group.members)
            groups += 1
            if groups >= GROUPS_PER_STEP or members >= MEMBERS_PER_STEP:
                groups = members = 0
                yield

    def let_go(self) -> Iterator[None]:
        """Forget what is left, in steps."""
        forgotten = 0
        while self.groups:
            self.groups.popitem()
            forgotten += 1
            if forgotten % GROUPS_PER_STEP == 0:
                yield
        yield from self.offsets.let_go(GROUPS_PER_STEP)

    def _ensure_group(self, group_id: str) -> None:
        """Offsets without a group make a "simple" one: empty, classic, without a protocol type."""
        if group_id not in self.groups and not self._deletions.is_unwritten(group_id):
            self.groups[group_id] = ClassicGroup(group_id, self._clock.now_ms())

    # Offsets ----------------------------------------------------------------------------------------------------

    def commit(
        self, request: CommitRequest, done: Callable[[list[StrandlineError | None] | StrandlineError], None]
    ) -> None:
        """Store offsets. `done` gets one answer per partition, or one error for all. Raises a refusal."""
        group = self.groups.get(request.group_id)
        if group is not None:
            group.check_commit(request)
            if request.producer is None:
                self.classic.touch(group, request.member_id)
        elif request.generation_id >= 0:
            text = f"There is no group {request.group_id}."
            raise GroupIdNotFound(text) if request.reports_unknown_group else IllegalGeneration(text)
        now = self._clock.now_ms()
        expires = NO_TIMESTAMP
        if request.retention_time_ms != DEFAULT_RETENTION:
            expires = min(max(now + request.retention_time_ms, 0), INT64_MAX)
        limit = self._settings.offset_metadata_max_bytes
        results = [check_metadata(commit, limit) for commit in request.offsets]
        accepted = [
            (OffsetKey(request.group_id, c.topic, c.partition), value_of(c, now, expires))
            for c, error in zip(request.offsets, results, strict=True)
            if error is None
        ]
        records: list[KeyValue] = [(write_offset_key(key), write_offset_value(value)) for key, value in accepted]
        if request.producer is None:
            outcome = self._sink.write_now(records)
            if outcome is not None:
                self._store(accepted, None, outcome.base_offset)
                done(results)
                return
        partitions = [TopicPartition(key.topic, key.partition) for key, _ in accepted]
        self.offsets.begin(request.group_id, partitions)

        def written(outcome: WriteResult) -> None:
            self.offsets.end(request.group_id, partitions)
            if outcome.error is not None:
                done(outcome.error)
                return
            self._store(accepted, request.producer, outcome.base_offset)
            done(results)

        if request.producer is None:
            self._sink.write(records, written)
        else:
            self._sink.write_transactional(records, request.producer, written)

    def _store(
        self, offsets: Sequence[tuple[OffsetKey, OffsetValue]], producer: ProducerAndEpoch | None, base_offset: int
    ) -> None:
        """Offsets that are committed in the log, from this record on."""
        for position, (key, value) in enumerate(offsets):
            self._ensure_group(key.group_id)
            if producer is None:
                self.offsets.put(key, value, base_offset + position)
            else:
                self.offsets.put_pending(producer, key, value, base_offset + position)
        self.upkeep.drop_stale_of(offsets)

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        """Whether offsets that are committed now can be part of a transaction that the producer has open here."""
        return self._sink.has_transaction(producer)

    def end_transaction(self, end: TransactionEnd, done: WriteDone) -> None:
        """Write the marker of a transaction. Its offsets count, or are dropped, when that is committed."""

        def written(outcome: WriteResult) -> None:
            if outcome.error is None:
                self.offsets.end_transaction(end.producer.producer_id, committed=end.is_commit)
            elif isinstance(outcome.error, InvalidProducerEpoch):
                # The log has a marker of this epoch: that of an earlier attempt, which was said to have failed.
                self.offsets.end_transaction_before(end.producer, committed=end.is_commit)
            done(outcome)

        self._sink.write_marker(end, written)

    def fetch(self, group_id: str, partitions: Iterable[TopicPartition] | None) -> list[CommittedOffset]:
        """Stored offsets: of the partitions asked for, in their order, or all there are.

        An offset of a topic that was deleted counts as none, also when another topic has its name now.
        """
        if group_id not in self.groups:
            return [CommittedOffset(topic=topic, partition=index) for topic, index in partitions or ()]
        if partitions is None:
            return [
                answer_of(partition, value)
                for partition, value in self.offsets.of_group(group_id)
                if self._topics.is_current(partition.topic, value)
            ]
        return [answer_of(partition, self._current(group_id, partition)) for partition in partitions]

    def _current(self, group_id: str, partition: TopicPartition) -> OffsetValue | None:
        value = self.offsets.get(group_id, partition)
        return value if value is not None and self._topics.is_current(partition.topic, value) else None

    def mark_unstable(self, group_id: str, answers: Iterable[CommittedOffset]) -> list[CommittedOffset]:
        """Replace offsets that an open transaction may change by an error: the client asked for stable offsets."""
        return [
            CommittedOffset(
                topic=answer.topic,
                partition=answer.partition,
                error=UnstableOffsetCommit("A transaction that commits this offset is still open."),
            )
            if self.offsets.is_unstable(OffsetKey(group_id, answer.topic, answer.partition))
            else answer
            for answer in answers
        ]

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        done: Callable[[list[StrandlineError | None] | StrandlineError], None],
    ) -> None:
        """Delete offsets of topics the group does not subscribe to. Raises a refusal."""
        group = self._existing(group_id)
        group.check_offset_delete()
        results: list[StrandlineError | None] = [
            GroupSubscribedToTopic(f"Group {group_id} is subscribed to {partition.topic}.")
            if group.is_subscribed_to(partition.topic)
            else None
            for partition in partitions
        ]
        keys = [
            OffsetKey(group_id, *partition) for partition in partitions if not group.is_subscribed_to(partition.topic)
        ]
        self.upkeep.delete_keys(
            [key for key in dict.fromkeys(keys) if self.offsets.has(key)],
            lambda error: done(results if error is None else error),
        )

    # Groups -----------------------------------------------------------------------------------------------------

    def _existing(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def delete_group(self, group_id: str, done: Callable[[StrandlineError | None], None]) -> None:
        """Delete an empty group and all its offsets. Raises a refusal.

        The group is gone at once; members that join before the deletion is committed join a new group. If the log
        refuses the deletion and there is no new group, the old group comes back. More offsets than a step may delete
        go after the group, in steps; those that are left by an error make a group without members.
        """
        self._deletions.delete(self._existing(group_id), done)

    def expire(self) -> Iterator[None]:
        """Delete offsets that were not used for offsets.retention.minutes or whose topic is gone, and empty groups
        without offsets. In steps."""
        return self.upkeep.expire()

    def drop_stale_offsets(self, topics: Collection[str]) -> Iterator[None]:
        """Delete every offset of topics of these names that were deleted, whether or not others have the names now. In
        steps."""
        return self.upkeep.drop_stale_in(topics)

    def forget_vanished_topics(self) -> Iterator[None]:
        """Topics were deleted: no share group has state of them any more. In steps."""

        def forget(group: Group) -> int:
            if not isinstance(group, ShareGroup):
                return 0
            self.share.forget_vanished_topics_of(group)
            return 1

        return self._each(forget)

    def fence(self, done: WriteDone) -> None:
        """Call back when everything written so far is committed."""
        self._sink.write([], done)
