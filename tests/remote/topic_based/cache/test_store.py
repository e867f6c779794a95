"""Partitions whose deletion is over are dropped by all brokers at the same record, and late records do no harm."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.model import TopicIdPartition
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.topic_based.cache import RemoteLogMetadataCache, RemotePartitionMetadataStore, StoreImage
from strandline.remote.topic_based.records import RemoteLogMetadata, deserialize, serialize
from strandline.remote.topic_based.snapshots.format import decode, encode
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

WHERE = (TP, partition(5, "other", 0x71))
DELETION = (MARKED, PARTITION_STARTED, PARTITION_FINISHED)


def life(number: int, where: TopicIdPartition = TP) -> list[RemoteLogMetadata]:
    """All that happens to a segment."""
    return [
        segment(number, where=where),
        *(update(number, state, where=where) for state in (FINISHED, DELETING, DELETED)),
    ]


def replayed(messages: list[RemoteLogMetadata], store: RemotePartitionMetadataStore) -> RemotePartitionMetadataStore:
    for message in messages:
        try:
            store.apply(deserialize(serialize(message)))
        except (ValueError, RemoteResourceNotFound):
            continue
    return store


def state_of(store: RemotePartitionMetadataStore) -> object:
    """All of it, comparable."""
    return {
        cache.partition: (
            cache.deletion,
            cache.list_remote_log_segments(),
            {epoch: cache.highest_offset_for_epoch(epoch) for epoch in range(3)},
            {epoch: cache.remote_log_size(epoch) for epoch in range(3)},
        )
        for cache in map(store.cache, store.partitions())
    }


def through_a_snapshot(store: RemotePartitionMetadataStore) -> RemotePartitionMetadataStore:
    image = StoreImage(UUID(int=3), 50, 7, store.images())
    return RemotePartitionMetadataStore(decode(encode(image)).caches)


def test_nothing_is_left_of_a_deleted_partition_in_memory_and_in_snapshots() -> None:
    first, last = [*life(1), segment(2), update(2, FINISHED)], [update(2, DELETING), update(2, DELETED)]
    store = replayed([*first, deletion(MARKED), deletion(PARTITION_STARTED), *last], RemotePartitionMetadataStore())
    assert list(store.partitions()) == [TP]
    store.apply(deletion(PARTITION_FINISHED))
    assert (list(store.partitions()), store.images(), store.cache(TP).deletion) == ([], (), None)


def test_a_partition_that_was_said_to_be_deleted_too_early_is_known_until_its_last_segment_is_gone() -> None:
    store = replayed([segment(1), *map(deletion, DELETION)], RemotePartitionMetadataStore())
    assert list(store.partitions()) == [TP]
    replayed([update(1, DELETING)], store)
    assert list(store.partitions()) == [TP]
    replayed([update(1, DELETED)], store)
    assert list(store.partitions()) == []


def test_a_snapshot_that_still_has_deleted_partitions_does_not_bring_them_back() -> None:
    cache = RemoteLogMetadataCache(TP)
    for state in DELETION:
        cache.apply(deletion(state))
    image = StoreImage(UUID(int=3), 50, 7, (cache.image(),))
    assert list(RemotePartitionMetadataStore(decode(encode(image)).caches).partitions()) == []


@pytest.mark.parametrize(
    "late",
    [
        deletion(PARTITION_STARTED),
        deletion(PARTITION_FINISHED),
        update(1, FINISHED),
        update(1, DELETING),
        update(1, DELETED),
        segment(1, state=FINISHED),
    ],
    ids=lambda late: f"{type(late).__name__}-{late.state.name}",
)
def test_what_comes_late_for_a_deleted_partition_is_refused(late: RemoteLogMetadata) -> None:
    store = replayed([*life(1), *map(deletion, DELETION)], RemotePartitionMetadataStore())
    for refuse in (store.check, store.apply):
        with pytest.raises((ValueError, RemoteResourceNotFound)):
            refuse(late)
    assert list(store.partitions()) == []


@pytest.mark.parametrize("late", [deletion(MARKED), segment(2)], ids=["marked", "copy"])
def test_a_deletion_or_a_copy_that_begins_late_makes_the_partition_known_until_it_is_deleted_again(
    late: RemoteLogMetadata,
) -> None:
    store = replayed([*life(1), *map(deletion, DELETION), late], RemotePartitionMetadataStore())
    assert list(store.partitions()) == [TP]
    replayed(deleter(store, TP), store)
    assert list(store.partitions()) == []


def deleter(store: RemotePartitionMetadataStore, where: TopicIdPartition) -> list[RemoteLogMetadata]:
    """The records of a broker that deletes a partition, given what it has read."""
    cache = store.cache(where)
    known = [known.segment_id.id.int for known in cache.list_remote_log_segments()]
    state = None if cache.deletion is None else cache.deletion.state
    if where not in store.partitions():
        return []
    return [
        *(deletion(each, where) for each in DELETION[:2] if state is None or each > state),
        *(update(number, each, where=where) for number in known for each in (DELETING, DELETED)),
        *([] if state is PARTITION_FINISHED else [deletion(PARTITION_FINISHED, where)]),
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[RemoteLogMetadata]:
    """What several writers say, each in his order and some of it twice; much of it is illegal when it comes."""
    writers: list[list[RemoteLogMetadata]] = []
    for where in WHERE:
        writers += [life(number, where)[: draw(st.integers(1, 4))] for number in draw(st.sets(st.integers(1, 3)))]
        for _ in range(draw(st.integers(0, 2))):
            writers += [[deletion(state, where) for state in DELETION[: draw(st.integers(1, 3))]]]
    merged: list[RemoteLogMetadata] = []
    while any(writers):
        chosen = draw(st.sampled_from([writer for writer in writers if writer]))
        merged.append(chosen[0])
        if draw(st.integers(0, 5)):
            del chosen[0]
    return merged


@given(histories(), st.data())
@settings(max_examples=300)
def test_reading_from_the_beginning_or_from_any_snapshot_gives_the_same_caches(
    history: list[RemoteLogMetadata], data: st.DataObject
) -> None:
    whole = replayed(history, RemotePartitionMetadataStore())
    store = RemotePartitionMetadataStore()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history)), max_size=3)))
    for start, end in zip([0, *cuts], [*cuts, len(history)], strict=True):
        store = replayed(history[start:end], through_a_snapshot(store))
    assert state_of(store) == state_of(whole)
    assert state_of(through_a_snapshot(whole)) == state_of(whole)
    assert not any(whole.cache(where).is_deleted for where in whole.partitions())


@given(histories(), st.data())
@settings(max_examples=300)
def test_deleting_ends_with_nothing_known_and_no_segment_left_over_whatever_was_written_before(
    history: list[RemoteLogMetadata], data: st.DataObject
) -> None:
    """Two brokers may delete the same partition at the same time, and not know of each other."""
    store = replayed(history, RemotePartitionMetadataStore())
    for where in list(store.partitions()):
        plans = [deleter(store, where), deleter(store, where)]
        while any(plans):
            replayed([data.draw(st.sampled_from([plan for plan in plans if plan])).pop(0)], store)
    for where in list(store.partitions()):  # what one of them has begun again after the other was through
        replayed(deleter(store, where), store)
    assert state_of(store) == {}
