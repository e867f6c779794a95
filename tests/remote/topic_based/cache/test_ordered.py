"""Packed segments in order: walks see one moment, begin where they are asked to, and cost nothing before they begin."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.remote.topic_based.cache import RemoteLogMetadataCache, ordered
from strandline.remote.topic_based.cache.ordered import BLOCK, OrderedSegments
from strandline.remote.topic_based.records.packing import newest_timestamp_of, pack, packed_start
from strandline.remote.values import RemoteLogSegmentMetadata
from tests.guards.counting import CountedInstructions
from tests.remote.topic_based.cache.test_partition import cache_of, finished
from tests.remote.topic_based.making import segment

Pairs = list[tuple[bytes, bytes]]


def packed(start: int, timestamp: int = 0) -> bytes:
    return pack(replace(segment(1, start, start + 9), max_timestamp_ms=timestamp))


def key(number: int) -> bytes:
    return number.to_bytes(16)


changes = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12), st.integers(0, 5)), max_size=60)


@given(changes=changes, asked=st.integers(0, 60), first=st.integers(0, 13), timestamp=st.integers(0, 6))
def test_a_walk_is_as_if_all_had_been_sorted_when_it_was_asked_for(
    changes: list[tuple[int, int, int]], asked: int, first: int, timestamp: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ordered, "BLOCK", 4)
        known: dict[bytes, bytes] = {}
        segments, walks, expected = OrderedSegments(), list[Iterator[tuple[bytes, bytes]]](), list[Pairs]()
        for count, (number, start, newest) in enumerate([*changes, (0, 0, 0)]):
            if count == min(asked, len(changes)):
                now = [(id_, one) for one, id_ in sorted((one, id_) for id_, one in known.items())]
                below = [pair for pair in now if pair[1] < packed_start(first)]
                walks = [segments.walk(), segments.walk(packed_start(first)), segments.walk_from_time(timestamp)]
                expected = [now, now[len(below) :], [p for p in now if newest_timestamp_of(p[1]) >= timestamp]]
                assert segments.last_before(packed_start(first)) == (below[-1] if below else None)
            change(segments, known, key(number), packed(start, newest))
        assert [[*walk] for walk in walks] == expected
        assert [*OrderedSegments(known.items()).walk()] == [*segments.walk()]


def change(segments: OrderedSegments, known: dict[bytes, bytes], id_: bytes, one: bytes) -> None:
    """Add a segment; one that is there is replaced, or removed if it is the same."""
    before = known.pop(id_, None)
    if before is not None:
        segments.remove(id_, before)
    if before != one:
        known[id_] = one
        segments.add(id_, one)


def many(count: int) -> RemoteLogMetadataCache:
    """Segments of ten records, each newer than those before."""
    return cache_of(*(message for at in range(count) for message in finished(at + 1, 10 * at, 10 * at + 9)))


QUESTIONS: dict[str, Callable[[RemoteLogMetadataCache], Iterator[RemoteLogSegmentMetadata]]] = {
    "all": lambda cache: cache.iter_remote_log_segments(),
    "of an epoch": lambda cache: cache.iter_remote_log_segments(0),
    "from an offset": lambda cache: cache.iter_from_offset(10),
    "from a time": lambda cache: cache.iter_from_time(1),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_to_ask_for_segments_takes_no_memory_for_each(question: str) -> None:
    """And so no time: whatever puts them in order first holds up everybody else until it is done."""
    cache = many(8 * BLOCK)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        given = QUESTIONS[question](cache)
        next(given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 32 * BLOCK, "some bytes for those of a block"


def test_a_search_by_time_looks_at_few_segments() -> None:
    few, most = many(2 * BLOCK), many(8 * BLOCK)

    def instructions(cache: RemoteLogMetadataCache) -> int:
        with CountedInstructions() as counted:
            found = next(cache.iter_from_time(segment(1, end=10 * len(cache) - 1).max_timestamp_ms))
        assert found.end_offset == 10 * len(cache) - 1
        return counted.total

    assert instructions(most) <= instructions(few) * 1.05 + 100


def test_an_image_copies_no_segment_and_stays_as_it_was() -> None:
    cache = many(8 * BLOCK)
    with CountedInstructions() as counted:
        image = cache.image()
    assert counted.total < BLOCK
    assert not isinstance(image.segments, Mapping), "a copy of which would hold up everybody else"
    before = [*cache.iter_remote_log_segments()]
    cache.apply(segment(8 * BLOCK + 1, 80 * BLOCK, 80 * BLOCK + 9))
    assert len(image.segments) == 8 * BLOCK
    assert [*RemoteLogMetadataCache.restored(image).iter_remote_log_segments()] == before
