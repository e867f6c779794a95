"""The share partitions of one partition of `__share_group_state`.

Memory follows the log: a change counts when it is committed. Changes of one share partition are decided one after the
other, since a snapshot has to hold everything that was written before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.coordinators.runtime import KeyValue, ReadBatch, RecordSink
from strandline.coordinators.share_states.known import (
    NOBODY,
    KeysByTopic,
    KnownShareState,
    check_leader_epoch,
    check_state_epoch,
    check_writer,
    merged,
)
from strandline.coordinators.share_states.schemas import (
    ShareUpdateValue,
    read_record,
    snapshot_record,
    tombstone,
    update_record,
)
from strandline.coordinators.share_states.turns import Changed, KeyTurns
from strandline.coordinators.share_states.values import (
    NO_COUNT,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    ShareStateUpdate,
    combined,
)
from strandline.errors import InvalidRequest, StrandlineError, UnknownTopicOrPartition
from strandline.model import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset
from strandline.share_errors import FencedStateEpoch

logger = logging.getLogger(__name__)

# Some milliseconds of work.
PARTITIONS_PER_STEP: Final = 200

_Change: TypeAlias = ShareState | ShareUpdateValue | None


class ShareShard:
    """One partition's share partitions. Synchronous: results of writes come through callbacks."""

    def __init__(
        self,
        sink: RecordSink,
        clock: Clock,
        *,
        has_partition: Callable[[SharePartitionKey], bool],
        updates_per_snapshot: int,
        delete_before: Callable[[Offset], None],
    ) -> None:
        """`has_partition`: whether the metadata has the partition of the topic with this id. `delete_before` deletes
        the records of this shard's log before an offset; it raises StrandlineError."""
        self._clock, self._delete_before = clock, delete_before
        self._has_partition, self._updates_per_snapshot = has_partition, updates_per_snapshot
        self._known: dict[SharePartitionKey, KnownShareState] = {}
        self._by_topic = KeysByTopic()
        self._turns = KeyTurns(sink, self._committed)
        self._next_offset: Offset = 0
        self._pruned_before: Offset = 0

    def __str__(self) -> str:
        return f"{len(self._known)} share partitions"

    def __len__(self) -> int:
        return len(self._known)

    # Loading and unloading

    def replay(self, batch: ReadBatch) -> None:
        """Apply a batch read from the log. Raises CorruptMessage."""
        for offset, key, value in batch.records:
            found = None if key is None else read_record(key, value)
            if found is not None:
                self._apply(offset, *found)

    def prepare(self) -> Iterator[None]:
        """Nothing waits for it."""
        return iter(())

    def loaded(self) -> Iterator[None]:
        """Share partitions whose topic went meanwhile end. In steps."""
        return self._drop_deleted(list(self._known))

    def unloaded(self, error: StrandlineError) -> Iterator[None]:
        """Another broker coordinates these share partitions now. Requests that wait have been answered."""
        return iter(())

    def let_go(self) -> Iterator[None]:
        """Forget them all, in steps."""
        while self._known:
            self._by_topic.remove(self._known.popitem()[0])
            if len(self._known) % PARTITIONS_PER_STEP == 0:
                yield

    # Requests

    def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: Offset, answer: Changed) -> None:
        """Begin anew: whatever was delivered before does not count, and a leader has to read before it writes.

        A group that begins (-1) does so once in an epoch: a request that was repeated may come very late.
        """

        def decide() -> KeyValue | None:
            known = self._known.get(key)
            if known is not None and state_epoch != NO_EPOCH:
                check_state_epoch(key, known, state_epoch)
            self._check_partition(key)
            if known is not None and start_offset == NO_OFFSET and state_epoch == known.state.state_epoch:
                return None
            if known is not None:
                known.reader = NOBODY
            now_ms = self._clock.now_ms()
            state = ShareState(
                snapshot_epoch=0 if known is None else known.state.snapshot_epoch + 1,
                state_epoch=state_epoch,
                leader_epoch=0,
                start_offset=start_offset,
                # Where the start is known nothing behind it has been settled, and so there is a lag to tell.
                delivery_complete_count=NO_COUNT if start_offset == NO_OFFSET else 0,
                created_ms=now_ms,
                written_ms=now_ms,
            )
            return snapshot_record(key, state)

        self._turns.add(key, decide, answer)

    def read(
        self,
        key: SharePartitionKey,
        *,
        leader_epoch: LeaderEpoch,
        reader: str,
        answer: Callable[[ShareState | StrandlineError], None],
    ) -> None:
        """The state, when it is sure that leaders of earlier epochs, and other readers, cannot change it any more."""
        found: list[ShareState] = []

        def decide() -> KeyValue | None:
            known = self._existing(key, "read")
            check_leader_epoch(key, known, leader_epoch)
            self._check_partition(key)
            found.append(known.state)
            known.reader = reader
            if leader_epoch == known.leader_epoch:
                return None
            state = known.state
            return self._record(
                key,
                known,
                ShareStateUpdate(
                    leader_epoch=leader_epoch,
                    start_offset=state.start_offset,
                    delivery_complete_count=state.delivery_complete_count,
                ),
                leader_epoch,
            )

        self._turns.add(key, decide, lambda error: answer(found[0] if error is None else error))

    def write(self, key: SharePartitionKey, update: ShareStateUpdate, writer: str, answer: Changed) -> None:
        """A leader has delivered records, or learned what became of them."""

        def decide() -> KeyValue:
            known = self._existing(key, "written")
            if update.leader_epoch != NO_EPOCH:
                check_leader_epoch(key, known, update.leader_epoch)
            if update.state_epoch != NO_EPOCH:
                check_state_epoch(key, known, update.state_epoch)
                if update.state_epoch > known.state.state_epoch:
                    raise FencedStateEpoch(
                        f"The state of share partition {key} has epoch {known.state.state_epoch}; epoch "
                        f"{update.state_epoch} is of a group of that name that was deleted."
                    )
            check_writer(key, known, writer)
            self._check_partition(key)
            return self._record(key, known, update, known.state.leader_epoch)

        self._turns.add(key, decide, answer)

    def delete(self, key: SharePartitionKey, answer: Changed) -> None:
        """The group is gone, or does not read the topic any more."""

        def decide() -> KeyValue | None:
            self._check_partition(key)
            return tombstone(key) if key in self._known else None

        self._turns.add(key, decide, answer)

    def summary(self, key: SharePartitionKey) -> ShareStateSummary:
        """Raises UnknownTopicOrPartition."""
        self._check_partition(key)
        known = self._known.get(key)
        if known is None:
            return ShareStateSummary()
        state = known.state
        return ShareStateSummary(
            state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count
        )

    # By time and by metadata

    def drop_deleted_topics(self, topic_ids: Iterable[UUID]) -> Iterator[None]:
        """Forget the share partitions of these topics, which are gone. In steps."""
        for topic_id in topic_ids:
            yield from self._drop_deleted(self._by_topic.of(topic_id))

    def _drop_deleted(self, keys: Sequence[SharePartitionKey]) -> Iterator[None]:
        """Those of the keys whose topic is gone."""
        for at in range(0, len(keys), PARTITIONS_PER_STEP):
            for key in keys[at : at + PARTITIONS_PER_STEP]:
                if not self._has_partition(key):
                    self._end(key)
            yield

    def _end(self, key: SharePartitionKey) -> None:
        """Its topic is gone."""

        def decide() -> KeyValue | None:
            return tombstone(key) if key in self._known and not self._has_partition(key) else None

        self._turns.add(key, decide, _ignore)

    def drop_left_over(self) -> Iterator[None]:
        """Forget the share partitions that have outlived their topic, because the log did not take their end. In
        steps."""
        for number, key in enumerate(self._by_topic.one_of_each(), 1):
            if not self._has_partition(key):
                yield from self._drop_deleted(self._by_topic.of(key.topic_id))
            elif number % PARTITIONS_PER_STEP == 0:
                yield

    def snapshot_cold(self, interval_ms: int) -> Iterator[None]:
        """Write snapshots of share partitions that do not change: until then, the log has to keep everything after
        their last snapshot. Nothing is done while each of them has such a snapshot. In steps."""
        if all(known.state.created_ms != known.state.written_ms for known in self._known.values()):
            return
        before_ms = self._clock.now_ms() - interval_ms
        cold = [key for key, known in self._known.items() if known.state.written_ms <= before_ms]
        for at in range(0, len(cold), PARTITIONS_PER_STEP):
            for key in cold[at : at + PARTITIONS_PER_STEP]:
                self._turns.add(key, partial(self._cold_snapshot, key, before_ms), _ignore)
            yield

    def _cold_snapshot(self, key: SharePartitionKey, before_ms: int) -> KeyValue | None:
        known = self._known.get(key)
        if known is None or known.state.written_ms > before_ms:
            return None
        state, now_ms = known.state, self._clock.now_ms()
        return snapshot_record(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms))

    @property
    def redundant_before(self) -> Offset:
        """Every record before this offset is replaced by a newer snapshot."""
        return min((known.snapshot_offset for known in self._known.values()), default=self._next_offset)

    def prune(self) -> Iterator[None]:
        """Delete those records, in one step. If that fails, the next look tries again."""
        self._prune()
        yield

    def _prune(self) -> None:
        offset = self.redundant_before
        if offset <= self._pruned_before:
            return
        try:
            self._delete_before(offset)
        except StrandlineError as error:
            logger.warning("records of share partitions before offset %d are not deleted yet: %s", offset, error)
        else:
            self._pruned_before = offset

    # Rules

    def _existing(self, key: SharePartitionKey, what: str) -> KnownShareState:
        known = self._known.get(key)
        if known is None:
            raise InvalidRequest(f"The share partition {key} cannot be {what}: it was not initialized.")
        return known

    def _check_partition(self, key: SharePartitionKey) -> None:
        if not self._has_partition(key):
            raise UnknownTopicOrPartition(f"The share partition {key} is of a topic or partition that does not exist.")

    def _record(
        self, key: SharePartitionKey, known: KnownShareState, update: ShareStateUpdate, leader_epoch: LeaderEpoch
    ) -> KeyValue:
        """An update, or a snapshot with the update in it if there were enough updates."""
        state = known.state
        if known.updates < self._updates_per_snapshot:
            return update_record(
                key,
                ShareUpdateValue(
                    snapshot_epoch=state.snapshot_epoch,
                    leader_epoch=leader_epoch,
                    start_offset=update.start_offset,
                    delivery_complete_count=update.delivery_complete_count,
                    batches=combined(update.batches, update.start_offset),
                ),
            )
        start, now_ms = max(update.start_offset, state.start_offset), self._clock.now_ms()
        return snapshot_record(
            key,
            ShareState(
                snapshot_epoch=state.snapshot_epoch + 1,
                state_epoch=state.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start,
                delivery_complete_count=update.delivery_complete_count,
                batches=combined((*state.batches, *update.batches), start),
                created_ms=now_ms,
                written_ms=now_ms,
            ),
        )

    # Writing

    def _committed(self, key: SharePartitionKey, record: KeyValue, offset: Offset) -> None:
        found = read_record(*record)
        assert found is not None, "the record is of a type that we write"
        is_first = key not in self._known
        self._apply(offset, *found)
        if is_first and key in self._known:
            self._known[key].reader = NOBODY
            if not self._has_partition(key):  # its topic was deleted meanwhile, before this state was known
                self._end(key)

    def _apply(self, offset: Offset, key: SharePartitionKey, change: _Change) -> None:
        self._next_offset = max(self._next_offset, offset + 1)
        known = self._known.get(key)
        match change:
            case None:
                if self._known.pop(key, None) is not None:
                    self._by_topic.remove(key)
            case ShareState():
                if known is None:
                    self._known[key] = KnownShareState(change, offset, change.leader_epoch)
                    self._by_topic.add(key)
                    return
                known.state, known.snapshot_offset = change, offset
                known.leader_epoch = max(known.leader_epoch, change.leader_epoch)
                if known.updates >= self._updates_per_snapshot:
                    known.updates = 0
            case ShareUpdateValue() if known is not None:
                known.state = merged(known.state, change)
                known.leader_epoch = max(known.leader_epoch, change.leader_epoch)
                known.updates += 1

    def __iter__(self) -> Iterator[tuple[SharePartitionKey, ShareState]]:
        """Every share partition with its state."""
        return ((key, known.state) for key, known in self._known.items())


def _ignore(error: StrandlineError | None) -> None:
    """The next look by time tries again."""
