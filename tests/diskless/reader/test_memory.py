"""Memory that is used again: never while anybody can still see it."""

from __future__ import annotations

import gc

from hypothesis import given
from hypothesis import strategies as st

from strandline.diskless.reader.memory import SMALLEST, RecycledMemory, capacity_for, held_bytes


def test_a_copy_is_writable_and_of_its_own() -> None:
    memory = RecycledMemory()
    for size in (1, SMALLEST - 1, SMALLEST, SMALLEST + 1, 700_000):
        data = bytearray(b"x" * size)
        copy = memory.copy(data)
        data[0] = 0
        copy[-1:] = b"y"
        assert len(copy) == size
        assert bytes(copy) == b"x" * (size - 1) + b"y"


def test_a_buffer_comes_back_when_its_last_view_is_gone() -> None:
    memory = RecycledMemory()
    first = memory.copy(b"a" * 200_000)
    on_its_way = memoryview(first)[1000:2000]
    del first
    second = memory.copy(b"b" * 200_000)
    assert bytes(on_its_way) == b"a" * 1000, "a response still holds it"
    assert memory.spare_bytes == 0
    del on_its_way
    third = memory.copy(b"c" * 199_000)
    assert bytes(second) == b"b" * 200_000
    assert bytes(third) == b"c" * 199_000
    del second, third
    gc.collect()
    memory.copy(b"d" * SMALLEST)
    assert memory.spare_bytes == 2 * capacity_for(200_000), "the third used the buffer of the first"


def test_no_more_is_kept_in_store_than_the_limit() -> None:
    memory = RecycledMemory(spare_limit=1_000_000)
    copies = [memory.copy(b"a" * 300_000) for _ in range(10)]
    del copies
    memory.copy(b"b" * SMALLEST)
    assert memory.spare_bytes <= 1_000_000


@given(st.integers(SMALLEST, 1 << 27))
def test_at_most_a_fifth_of_a_buffer_is_unused(size: int) -> None:
    assert size <= capacity_for(size) <= size * 1.25


def test_what_a_buffer_holds_is_counted_with_what_it_does_not_use() -> None:
    copy = RecycledMemory().copy(b"a" * 200_000)
    assert held_bytes(copy) == capacity_for(200_000)
    assert held_bytes(bytearray(100)) >= 100
