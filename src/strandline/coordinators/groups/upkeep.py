"""What is done to the offsets of a shard by itself: they expire, end with their topics, and get the ids of topics.

A shard may have a million offsets, and whatever looks at all of them does so in steps: requests come in between. So
every step decides by what is true when it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from strandline.clock import Clock
from strandline.config import GroupSettings
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.offsets import OffsetStore
from strandline.coordinators.groups.schemas import OffsetKey, OffsetValue, write_offset_key, write_offset_value
from strandline.coordinators.runtime import KeyValue, RecordSink, WriteResult
from strandline.crash import crash_point
from strandline.errors import NonEmptyGroup, StrandlineError
from strandline.model import ZERO_UUID

# Records that are independent of each other; a batch of them has to stay below max.message.bytes.
_RECORDS_PER_WRITE: Final = 1000
# Some milliseconds of work, also if a tombstone is written for each.
OFFSETS_PER_STEP: Final = 500

Deleted = Callable[[StrandlineError | None], None]


class OffsetUpkeep:
    """For one shard. `delete_group` deletes a group that is empty."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        offsets: OffsetStore,
        topics: TopicIncarnations,
        sink: RecordSink,
        clock: Clock,
        settings: GroupSettings,
        delete_group: Callable[[str, Deleted], None],
    ) -> None:
        self._groups, self._offsets, self._topics = groups, offsets, topics
        self._sink, self._clock, self._settings = sink, clock, settings
        self._delete_group = delete_group

    # Deleting

    def delete_keys(self, keys: Sequence[OffsetKey], done: Deleted) -> None:
        """Write tombstones for offsets; `done` gets the first error."""
        chunks = [keys[at : at + _RECORDS_PER_WRITE] for at in range(0, len(keys), _RECORDS_PER_WRITE)] or [[]]
        errors: list[StrandlineError] = []

        def written(chunk: Sequence[OffsetKey], is_last: bool, outcome: WriteResult) -> None:
            if outcome.error is None:
                for key in chunk:
                    self._offsets.remove(key)
            else:
                errors.append(outcome.error)
            if is_last:
                done(errors[0] if errors else None)

        for chunk in chunks:
            records: list[KeyValue] = [(write_offset_key(key), None) for key in chunk]
            self._sink.write(records, partial(written, chunk, chunk is chunks[-1]))

    def delete_before(self, group_id: str, record_offset: int, done: Deleted) -> None:
        """Delete the offsets that a group had before this record of the log, so many at a time: the next ones when the
        tombstones of those before are committed. What the group commits meanwhile stays. `done` gets the first error.
        """
        pieces = self._offsets.pieces_before(group_id, record_offset, OFFSETS_PER_STEP)
        changing: list[OffsetKey] = []

        def go_on(error: StrandlineError | None) -> None:
            piece = None if error is not None else next(pieces, None)
            if piece is None:
                # Commits that were under way when their offset was looked at have ended before these tombstones.
                end([key for key in changing if self._offsets.is_before(key, record_offset)], error)
                return
            delete(piece, go_on)

        def delete(keys: Sequence[OffsetKey], then: Deleted) -> None:
            # A tombstone behind a commit would delete what that stores.
            since = {key for key in keys if self._offsets.is_changing_since(key, record_offset)}
            changing.extend(since)
            self.delete_keys([key for key in keys if key not in since], then)

        def end(left: list[OffsetKey], error: StrandlineError | None) -> None:
            if error is not None or not left:
                done(error)
                return
            changing.clear()
            delete(left, lambda failure: done(failure or self._in_use(group_id, changing)))

        go_on(None)

    @staticmethod
    def _in_use(group_id: str, offsets: Sequence[OffsetKey]) -> StrandlineError | None:
        if not offsets:
            return None
        return NonEmptyGroup(
            f"Group {group_id} is in use again: {len(offsets)} of its offsets are committed while they are deleted."
        )

    # By time

    def expire(self) -> Iterator[None]:
        """Delete offsets that were not used for offsets.retention.minutes or whose topic is gone, and empty groups
        without offsets."""
        looked_at = 0
        group_ids = list(self._groups)
        while group_ids:  # taken out one at a time: to let go of a million at once takes long
            group = self._groups.get(group_ids.pop())
            if group is None:
                continue
            pieces = self._offsets.pieces_of(group.group_id, OFFSETS_PER_STEP)
            if self._offsets.has_more_than(OFFSETS_PER_STEP, group.group_id):
                # The group itself goes at a later look, when it has no offsets left. Each piece is taken in the step
                # that judges it: its offsets may have been committed anew since the step before.
                for piece in pieces:
                    self._expire_offsets(group, piece)
                    yield
                looked_at = 0
                continue
            offsets = next(pieces, ())
            self._expire_group(group, offsets)
            looked_at += 1 + len(offsets)
            if looked_at >= OFFSETS_PER_STEP:
                looked_at = 0
                yield
        yield from self.drop_stale()

    def _expire_group(self, group: Group, offsets: Collection[tuple[OffsetKey, OffsetValue]]) -> None:
        """With all offsets of the group."""
        keys = self._expired_keys(group, offsets)
        if keys is None:
            return
        if len(keys) == len(offsets) and group.may_be_deleted and self._offsets.is_idle(group.group_id):
            self._delete_group(group.group_id, ignore)
        elif keys:
            self.delete_keys(keys, ignore)

    def _expire_offsets(self, group: Group, offsets: Collection[tuple[OffsetKey, OffsetValue]]) -> None:
        """With some offsets of the group."""
        if self._groups.get(group.group_id) is group and (keys := self._expired_keys(group, offsets)):
            self.delete_keys(keys, ignore)

    def _expired_keys(self, group: Group, offsets: Iterable[tuple[OffsetKey, OffsetValue]]) -> list[OffsetKey] | None:
        """None if offsets of the group do not expire in its state."""
        now, retention = self._clock.now_ms(), self._settings.offsets_retention_minutes * 60_000
        keys = []
        for key, value in offsets:
            expires_at = group.expires_at(value, retention)
            if expires_at is None:
                return None
            if now >= expires_at and not group.is_subscribed_to(key.topic) and not self._is_changing(key):
                keys.append(key)
        return keys

    def _is_changing(self, key: OffsetKey) -> bool:
        """Whether a commit is on its way: a tombstone behind it would delete what it stores."""
        return self._offsets.is_unstable(key) or self._offsets.is_under_way(key)

    # Topics that go, and their ids

    def drop_stale(self) -> Iterator[None]:
        """Delete every offset whose topic was deleted, whether or not another topic has its name now."""
        for piece in self._offsets.pieces(OFFSETS_PER_STEP):
            self.drop_stale_of(piece)
            yield

    def drop_stale_in(self, topics: Collection[str]) -> Iterator[None]:
        """The same in topics of these names, of which some were deleted while this shard is here."""
        for piece in self._offsets.pieces_of_topics(topics, OFFSETS_PER_STEP):
            # Every offset that was committed since the shard was loaded has an id: one without was there before the
            # topic went, also if there is another by the time of this step.
            self._drop([key for key, value in piece if value.topic_id == ZERO_UUID or not self._is_current(key, value)])
            yield

    def drop_stale_of(self, offsets: Iterable[tuple[OffsetKey, OffsetValue]]) -> None:
        """The same with these offsets."""
        self._drop([key for key, value in offsets if not self._is_current(key, value)])

    def _is_current(self, key: OffsetKey, value: OffsetValue) -> bool:
        return self._topics.is_current(key.topic, value)

    def _drop(self, stale: Iterable[OffsetKey]) -> None:
        # A tombstone behind a commit that is under way would delete what that commit stores, which may be an offset
        # of the new topic. The commit looks again when it is written. One behind a commit for the new topic in an open
        # transaction would take it out of that: what is stale does not count meanwhile, and goes at a later look.
        keys = [
            key for key in stale if not self._offsets.is_under_way(key) and not self._has_transaction_in_current(key)
        ]
        if keys:
            crash_point("groups.offsets.before_tombstones")
            self.delete_keys(keys, ignore)

    def _has_transaction_in_current(self, key: OffsetKey) -> bool:
        """Whether an open transaction has an offset of the topic that has the name now."""
        return any(
            value.topic_id != ZERO_UUID and self._is_current(key, value) for value in self._offsets.pending_of(key)
        )

    def store_topic_ids(self) -> Iterator[None]:
        """Store offsets that have no topic id again, with the id, before there are requests. What fails here is done
        at the next load."""
        for piece in self._offsets.pieces(OFFSETS_PER_STEP):
            found = [(key, self._topics.with_id(key, value)) for key, value in piece]
            stored = [(key, value) for key, value in found if value is not None and not self._offsets.is_unstable(key)]
            for key, value in stored:
                self._offsets.replace(key, value)
            if stored:
                self._sink.write([(write_offset_key(key), write_offset_value(value)) for key, value in stored], ignore)
            yield


def ignore(_: StrandlineError | WriteResult | None) -> None:
    """The writer has logged the error, and the next sweep tries again."""
