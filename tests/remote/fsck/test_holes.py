"""Holes of logs against a model that looks at every offset."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.remote.fsck import TieredLogBounds
from strandline.remote.fsck.holes import find_holes
from strandline.remote.topic_based.cache import RemoteLogMetadataCache
from strandline.remote.values import RemoteLogSegmentMetadataUpdate
from tests.remote.topic_based.making import FINISHED, TP, segment

END = 40
EPOCHS = {0: 0, 1: 13, 2: 27}
spans = st.lists(st.tuples(st.integers(0, END - 1), st.integers(0, 9), st.booleans()), max_size=8)


def epochs_of(start: int, end: int) -> dict[int, int]:
    """The epochs of the log in a segment."""
    starts = sorted(EPOCHS.items())
    first = max(epoch for epoch, at in starts if at <= start)
    return {first: start} | {epoch: at for epoch, at in starts if start < at <= end}


def cache_of(found: list[tuple[int, int, bool]]) -> RemoteLogMetadataCache:
    cache = RemoteLogMetadataCache(TP)
    for number, (start, length, is_ours) in enumerate(found):
        epochs = epochs_of(start, start + length) if is_ours else {9: start}
        made = segment(number, start, start + length, epochs=epochs)
        cache.apply(made)
        cache.apply(
            RemoteLogSegmentMetadataUpdate(
                segment_id=made.segment_id, event_timestamp_ms=0, state=FINISHED, broker_id=1
            )
        )
    return cache


def offsets(holes: list[tuple[int, int]]) -> set[int]:
    return {offset for start, end in holes for offset in range(start, end + 1)}


@given(spans, st.integers(0, END), st.integers(0, END))
def test_holes_are_the_offsets_that_readers_find_in_no_segment(
    found: list[tuple[int, int, bool]], log_start: int, local_start: int
) -> None:
    cache = cache_of(found)
    epoch_at = {offset: max(epoch for epoch, at in EPOCHS.items() if at <= offset) for offset in range(END)}
    wanted = range(log_start, local_start)
    bounds = TieredLogBounds(log_start, local_start, sorted(EPOCHS.items()))
    assert offsets(find_holes(cache, bounds, log_start=log_start)) == {
        offset for offset in wanted if cache.remote_log_segment_metadata(epoch_at[offset], offset) is None
    }
    any_epoch = find_holes(cache, bounds._replace(epochs=None), log_start=log_start)
    assert offsets(any_epoch) == {
        offset for offset in wanted if not any(start <= offset <= start + length for start, length, _ in found)
    }


def test_an_unknown_log_start_is_the_first_remote_offset() -> None:
    cache = cache_of([(10, 4, True), (20, 4, True)])
    bounds = TieredLogBounds(None, 30, sorted(EPOCHS.items()))
    assert find_holes(cache, bounds, log_start=None) == [(15, 19), (25, 29)]
    assert find_holes(cache_of([]), bounds, log_start=None) == []
