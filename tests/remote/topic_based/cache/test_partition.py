"""The cache: legal moves only, and answers that agree with something too simple to be wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.model import TopicIdPartition
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.topic_based.cache import RemoteLogMetadataCache, RemotePartitionMetadataStore, StoreImage
from strandline.remote.topic_based.records import RemoteLogMetadata, deserialize, serialize
from strandline.remote.topic_based.snapshots.format import decode, encode
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    RemoteSummary,
    is_legal_partition_move,
    is_legal_segment_move,
)
from tests.remote.topic_based.making import (
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    PARTITION_FINISHED,
    PARTITION_STARTED,
    TP,
    deletion,
    partition,
    segment,
    update,
)

EPOCHS = range(4)
OFFSETS = range(-1, 70)


def cache_of(*messages: RemoteLogMetadata) -> RemoteLogMetadataCache:
    cache = RemoteLogMetadataCache(TP)
    for message in messages:
        cache.apply(message)
    return cache


def finished(number: int, start: int, end: int, **others: int) -> tuple[RemoteLogMetadata, RemoteLogMetadata]:
    return segment(number, start, end, size=others.get("size", 1000)), update(number, FINISHED)


def answers(cache: RemoteLogMetadataCache) -> object:
    """Everything that can be asked."""
    return (
        [cache.remote_log_segment_metadata(epoch, offset) for epoch in EPOCHS for offset in OFFSETS],
        [cache.next_segment_with_txn_index(epoch, offset) for epoch in EPOCHS for offset in OFFSETS],
        [cache.highest_offset_for_epoch(epoch) for epoch in EPOCHS],
        [cache.leader_epochs_from(offset) for offset in OFFSETS],
        [cache.remote_log_size(epoch) for epoch in EPOCHS],
        [cache.list_remote_log_segments(epoch) for epoch in (None, *EPOCHS)],
        cache.summary(),
        cache.deletion,
    )


def found(cache: RemoteLogMetadataCache, offset: int, epoch: int = 0) -> int | None:
    metadata = cache.remote_log_segment_metadata(epoch, offset)
    return None if metadata is None else metadata.segment_id.id.int


def listed(cache: RemoteLogMetadataCache, epoch: int | None = None) -> list[int]:
    return [metadata.segment_id.id.int for metadata in cache.list_remote_log_segments(epoch)]


# By example


def test_only_finished_segments_answer_for_offsets_but_all_are_listed() -> None:
    cache = cache_of(segment(1, 0, 9))
    assert (found(cache, 5), listed(cache), listed(cache, 0)) == (None, [1], [1])
    cache.apply(update(1, FINISHED))
    assert (found(cache, 5), found(cache, 10), cache.remote_log_size(0)) == (1, None, 1000)
    cache.apply(update(1, DELETING))
    assert (found(cache, 5), listed(cache, 0), cache.remote_log_size(0)) == (None, [1], 0)
    cache.apply(update(1, DELETED))
    assert (listed(cache), listed(cache, 0), cache.highest_offset_for_epoch(0)) == ([], [], 9)


def test_a_segment_of_several_epochs_answers_for_each_in_its_part() -> None:
    cache = cache_of(segment(1, 0, 29, epochs={0: 0, 1: 10, 2: 20}), update(1, FINISHED))
    assert [found(cache, offset, epoch) for epoch in (0, 1, 2) for offset in (9, 10, 19, 20)] == [
        *(1, None, None, None),
        *(None, 1, 1, None),
        *(None, None, None, 1),
    ]
    assert [cache.highest_offset_for_epoch(epoch) for epoch in EPOCHS] == [9, 19, 29, None]


def test_the_epochs_from_an_offset_on_are_those_that_lookups_find_there() -> None:
    cache = cache_of(segment(1, 0, 29, epochs={0: 0, 1: 10, 2: 20}), update(1, FINISHED))
    assert cache.leader_epochs_from(0) == [(0, 0), (1, 10), (2, 20)]
    assert cache.leader_epochs_from(10) == [(1, 10), (2, 20)]
    assert cache.leader_epochs_from(29) == [(2, 20)]
    assert cache.leader_epochs_from(30) == []
    cache.apply(segment(2, 30, 59, epochs={2: 30, 3: 40}))
    assert cache.leader_epochs_from(30) == []
    cache.apply(update(2, FINISHED))
    assert cache.leader_epochs_from(25) == [(2, 20), (3, 40)]
    assert cache.leader_epochs_from(30) == [(2, 30), (3, 40)]
    cache.apply(update(1, DELETING))
    assert cache.leader_epochs_from(0) == [(2, 30), (3, 40)]


def test_an_epoch_without_records_answers_for_nothing() -> None:
    cache = cache_of(segment(1, 0, 29, epochs={0: 0, 1: 10, 2: 10}), update(1, FINISHED))
    assert [found(cache, 10, epoch) for epoch in (0, 1, 2)] == [None, None, 1]
    assert (cache.remote_log_size(1), cache.highest_offset_for_epoch(1), listed(cache, 1)) == (0, None, [1])
    for state in (DELETING, DELETED):
        cache.apply(update(1, state))
    assert listed(cache, 1) == []


def test_segments_that_a_later_one_covers_answer_no_more_but_stay_listed() -> None:
    cache = cache_of(*finished(1, 0, 9), *finished(2, 10, 19), *finished(3, 20, 29), *finished(4, 5, 24))
    assert [found(cache, offset) for offset in (0, 4, 5, 9, 10, 19, 20, 24, 25, 29)] == [1, 1, 4, 4, 4, 4, 3, 3, 3, 3]
    assert listed(cache, 0) == [1, 4, 2, 3]
    cache.apply(update(2, DELETING))
    cache.apply(update(2, DELETED))
    assert found(cache, 15) == 4


def test_a_segment_that_has_less_than_another_does_not_hide_it() -> None:
    cache = cache_of(*finished(1, 0, 99), *finished(2, 10, 19), *finished(3, 0, 9))
    assert {found(cache, offset) for offset in range(100)} == {1}
    assert sorted(listed(cache, 0)) == [1, 2, 3]


def test_of_two_segments_with_the_same_offsets_the_later_one_answers() -> None:
    cache = cache_of(*finished(1, 0, 9), *finished(2, 0, 9))
    assert (found(cache, 0), sorted(listed(cache, 0))) == (2, [1, 2])


def test_repeating_an_update_is_legal_and_changes_no_answer() -> None:
    cache = cache_of(*finished(1, 0, 9), *finished(2, 0, 9))
    cache.apply(update(1, FINISHED))
    assert (found(cache, 0), cache.remote_log_size(0)) == (2, 2000)


def test_the_next_transaction_index_is_looked_for_from_the_offset_on() -> None:
    cache = cache_of(*finished(1, 0, 9))
    for number in (2, 3, 4):
        cache.apply(segment(number, number * 10, number * 10 + 9, txn_index_empty=number == 3))
        cache.apply(update(number, FINISHED))
    numbers = [cache.next_segment_with_txn_index(0, offset) for offset in (0, 20, 29, 30, 49, 50)]
    assert [None if each is None else each.segment_id.id.int for each in numbers] == [2, 2, 2, 4, 4, None]


def test_updates_change_what_they_bring_and_nothing_else() -> None:
    cache = cache_of(segment(1), update(1, FINISHED, custom=b"where"))
    (metadata,) = cache.list_remote_log_segments()
    assert metadata == replace(
        segment(1), state=FINISHED, broker_id=2, event_timestamp_ms=1_790_000_002_000, custom_metadata=b"where"
    )


def test_a_partition_that_is_being_deleted_takes_no_more_segments() -> None:
    cache = cache_of(segment(1), deletion(MARKED), segment(2, 10, 19), deletion(PARTITION_STARTED))
    with pytest.raises(ValueError, match="takes no more segments: it is in DELETE_PARTITION_STARTED"):
        cache.apply(segment(3, 20, 29))
    for number in (1, 2):
        for state in (DELETING, DELETED):
            cache.apply(update(number, state))
    cache.apply(deletion(PARTITION_FINISHED))
    assert listed(cache) == []


def test_a_segment_takes_well_under_a_kilobyte() -> None:
    cache = RemoteLogMetadataCache(TP)
    count = 5000
    for number in range(count):
        cache.apply(replace(segment(number, number * 10, number * 10 + 9), segment_id=_id(number)))
        cache.apply(replace(update(number, FINISHED), segment_id=_id(number)))
    image = cache.image()
    state = image.epochs[0]
    used = sys.getsizeof(image.segments) + sum(sys.getsizeof(part) for pair in image.segments.items() for part in pair)
    used += sum(sys.getsizeof(getattr(state, name)) for name in ("_starts", "_ends", "_ids", "unreferenced"))
    assert used / count < 400


def _id(number: int) -> RemoteLogSegmentId:
    return segment(number).segment_id._replace(id=UUID(int=number << 64 | 7))


def test_segments_are_given_as_they_were_when_they_were_asked_for() -> None:
    cache = cache_of(*finished(1, 0, 9), *finished(2, 10, 19))
    given = cache.iter_remote_log_segments()
    for message in (update(1, DELETING), update(1, DELETED), segment(3, 20, 29)):
        cache.apply(message)
    assert [(metadata.segment_id.id.int, metadata.state) for metadata in given] == [(1, FINISHED), (2, FINISHED)]


# By model

ids = st.integers(1, 6)


@st.composite
def added(draw: st.DrawFn) -> RemoteLogSegmentMetadata:
    start = draw(st.integers(0, 50))
    end = start + draw(st.integers(0, 15))
    epochs = sorted(draw(st.sets(st.sampled_from(EPOCHS), min_size=1, max_size=3)))
    starts = [
        start,
        *sorted(draw(st.lists(st.integers(start, end), min_size=len(epochs) - 1, max_size=len(epochs) - 1))),
    ]
    return segment(
        draw(ids),
        start,
        end,
        epochs=dict(zip(epochs, starts, strict=True)),
        size=draw(st.integers(1, 100)),
        txn_index_empty=draw(st.booleans()),
        state=draw(st.sampled_from([RemoteLogSegmentState.COPY_SEGMENT_STARTED] * 5 + [FINISHED])),
    )


updated = st.builds(update, ids, st.sampled_from(RemoteLogSegmentState), custom=st.none() | st.binary(max_size=3))
deletions = st.builds(deletion, st.sampled_from(RemotePartitionDeleteState))
# More updates than anything else, or nothing would ever come to its end.
events = st.lists(st.one_of(added(), updated, updated, updated, added(), deletions), max_size=60)


class Model:
    """Segments in a dictionary, and what the table of moves says."""

    def __init__(self) -> None:
        self.segments: dict[int, RemoteLogSegmentMetadata] = {}
        self.deletion: RemotePartitionDeleteState | None = None

    def is_legal(self, message: RemoteLogMetadata) -> bool:
        if isinstance(message, RemotePartitionDeleteMetadata):
            return is_legal_partition_move(self.deletion, message.state)
        known = self.segments.get(message.segment_id.id.int)
        if isinstance(message, RemoteLogSegmentMetadataUpdate):
            is_added = message.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
            return known is not None and not is_added and is_legal_segment_move(known.state, message.state)
        is_closed = known is None and self.deletion in (PARTITION_STARTED, PARTITION_FINISHED)
        started = message.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
        return started and not is_closed and is_legal_segment_move(known.state if known else None, message.state)

    def apply(self, message: RemoteLogMetadata) -> None:
        match message:
            case RemotePartitionDeleteMetadata():
                self.deletion = message.state
            case RemoteLogSegmentMetadata():
                self.segments[message.segment_id.id.int] = message
            case RemoteLogSegmentMetadataUpdate():
                number = message.segment_id.id.int
                self.segments[number] = self.segments[number].updated(message)
                if message.state is DELETED:
                    del self.segments[number]

    def sizes(self) -> list[tuple[RemoteLogSegmentState, int]]:
        return [(metadata.state, metadata.segment_size_in_bytes) for metadata in self.segments.values()]

    def has(self, epoch: int, offset: int) -> set[int]:
        """The finished segments that have an offset in an epoch."""
        return {
            number
            for number, metadata in self.segments.items()
            if metadata.state is FINISHED and offset in _range(metadata, epoch)
        }


def _range(metadata: RemoteLogSegmentMetadata, epoch: int) -> range:
    epochs = metadata.segment_leader_epochs
    if epoch not in epochs:
        return range(0)
    later = [start for other, start in epochs.items() if other > epoch]
    return range(epochs[epoch], min(later, default=metadata.end_offset + 1))


@given(events)
def test_illegal_moves_are_refused_and_change_nothing_and_legal_ones_are_what_the_table_says(
    messages: list[RemoteLogMetadata],
) -> None:
    cache, model = RemoteLogMetadataCache(TP), Model()
    for message in messages:
        if model.is_legal(message):
            cache.check(message)
            cache.apply(message)
            model.apply(message)
        else:
            before = answers(cache)
            for refuse in (cache.check, cache.apply):
                with pytest.raises((ValueError, RemoteResourceNotFound)):
                    refuse(message)
            assert answers(cache) == before
    assert {metadata.segment_id.id.int: metadata for metadata in cache.list_remote_log_segments()} == model.segments
    assert cache.summary() == RemoteSummary(
        segments=len(model.segments),
        finished_bytes=sum(size for state, size in model.sizes() if state is FINISHED),
        deleting_segments=sum(state is DELETING for state, _ in model.sizes()),
        deleting_bytes=sum(size for state, size in model.sizes() if state is DELETING),
    )
    assert RemoteLogMetadataCache.restored(cache.image()).summary() == cache.summary()
    for epoch in EPOCHS:
        of_epoch = {number for number, metadata in model.segments.items() if epoch in metadata.segment_leader_epochs}
        assert set(listed(cache, epoch)) == of_epoch
        sizes = [
            metadata.segment_size_in_bytes
            for metadata in model.segments.values()
            if metadata.state is FINISHED and len(_range(metadata, epoch))
        ]
        assert cache.remote_log_size(epoch) == sum(sizes)
        for offset in OFFSETS:
            answer = found(cache, offset, epoch)
            assert answer is None or answer in model.has(epoch, offset)


@given(events)
def test_without_deletions_every_offset_of_a_finished_segment_is_found(messages: list[RemoteLogMetadata]) -> None:
    cache, model = RemoteLogMetadataCache(TP), Model()
    for message in messages:
        if model.is_legal(message) and getattr(message, "state", None) not in (DELETING, DELETED):
            cache.apply(message)
            model.apply(message)
    for epoch in EPOCHS:
        for offset in OFFSETS:
            assert (found(cache, offset, epoch) is None) == (not model.has(epoch, offset))
        highest = [offset for offset in OFFSETS if model.has(epoch, offset)]
        assert cache.highest_offset_for_epoch(epoch) == max(highest, default=None)


@given(events)
def test_the_first_offset_of_an_epoch_is_found_and_none_before_it(messages: list[RemoteLogMetadata]) -> None:
    cache, model = RemoteLogMetadataCache(TP), Model()
    for message in messages:
        if model.is_legal(message):
            cache.apply(message)
            model.apply(message)
    for offset in OFFSETS:
        epochs = cache.leader_epochs_from(offset)
        assert [epoch for epoch, _ in epochs] == [
            epoch for epoch in EPOCHS if any(found(cache, at, epoch) is not None for at in OFFSETS if at >= offset)
        ]
        for epoch, start in epochs:
            assert found(cache, start, epoch) is not None
            assert all(found(cache, at, epoch) is None for at in range(offset, start))


@given(events, st.integers(-1, 70), st.integers(0, 30))
def test_segments_are_found_by_offsets_and_by_id_as_if_all_were_looked_at(
    messages: list[RemoteLogMetadata], first: int, length: int
) -> None:
    cache, model = RemoteLogMetadataCache(TP), Model()
    for message in messages:
        if model.is_legal(message):
            cache.apply(message)
            model.apply(message)
    last, known = first + length, cache.list_remote_log_segments()
    inside = [one for one in known if one.start_offset <= last and one.end_offset >= first]
    by_start = sorted(cache.overlapping(first, last), key=lambda one: (one.start_offset, one.segment_id.id))
    assert by_start == sorted(inside, key=lambda one: (one.start_offset, one.segment_id.id))
    assert [cache.find_segment(one.segment_id.id) for one in known] == [*known]
    assert cache.find_segment(UUID(int=0)) is None


@given(events, st.data())
@settings(max_examples=200)
def test_a_snapshot_and_the_rest_give_the_same_as_everything(
    messages: list[RemoteLogMetadata], data: st.DataObject
) -> None:
    """Illegal ones are among the records, too: every broker skips the same."""
    here, there = TP, partition(5, "other", 0x71)
    records = [serialize(_at(message, data.draw(st.sampled_from([here, here, there])))) for message in messages]
    cut = data.draw(st.integers(0, len(records)))
    whole, first = RemotePartitionMetadataStore(), RemotePartitionMetadataStore()
    _replay(whole, records)
    _replay(first, records[:cut])
    image = StoreImage(UUID(int=3), 50, cut, first.images())
    restored = decode(encode(image))
    assert restored[:3] == image[:3]
    second = RemotePartitionMetadataStore(restored.caches)
    assert all(answers(second.cache(where)) == answers(first.cache(where)) for where in (here, there))
    _replay(second, records[cut:])
    assert all(answers(second.cache(where)) == answers(whole.cache(where)) for where in (here, there))
    assert set(second.partitions()) == set(whole.partitions())


def _replay(store: RemotePartitionMetadataStore, records: list[bytes]) -> None:
    for value in records:
        message = deserialize(value)
        try:
            store.apply(message)
        except (ValueError, RemoteResourceNotFound):
            continue


def _at(message: RemoteLogMetadata, where: TopicIdPartition) -> RemoteLogMetadata:
    if isinstance(message, RemotePartitionDeleteMetadata):
        return replace(message, partition=where)
    return replace(message, segment_id=message.segment_id._replace(partition=where))
