"""A store that is not used while something speaks against it."""

from __future__ import annotations

from strandline.clock import SystemClock
from strandline.objects.guarding import GuardedStore
from strandline.objects.memory import MemoryStore
from strandline.objects.store import ObjectRange, WrongStore


async def test_what_speaks_against_a_store_is_the_answer_to_each_range() -> None:
    """As every error of a range is: readers tell their clients which one it is, instead of ending the connection."""
    wrong = WrongStore("Another store is at this address.")
    store = GuardedStore(MemoryStore(SystemClock()), lambda: wrong)
    assert await store.get_ranges([ObjectRange("one", 0, 1), ObjectRange("two", 0, 1)]) == [wrong, wrong]
