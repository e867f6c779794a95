"""When no producer can send more."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from strandline.diskless.values import DisklessAppend
from strandline.diskless.writer.windows import SendWindows
from tests.diskless.writer.writing import batch

PLAIN = batch()
BATCHES = {producer: batch(producer=producer, sequence=0) for producer in range(1, 4)}


def sent(windows: SendWindows, count: int, producer: int = 1) -> list[DisklessAppend]:
    for _ in range(count):
        windows.sent(BATCHES[producer])
    return [BATCHES[producer]] * count


def test_a_producer_with_five_batches_on_their_way_sends_no_more() -> None:
    windows = SendWindows()
    sent(windows, 4)
    assert not windows.are_used_up
    sent(windows, 1)
    assert windows.are_used_up


def test_batches_in_earlier_objects_count() -> None:
    windows = SendWindows()
    earlier = sent(windows, 3)
    windows.rotated()
    sent(windows, 1)
    assert not windows.are_used_up
    sent(windows, 1)
    assert windows.are_used_up
    windows.answered(earlier)
    assert not windows.are_used_up, "an answer lets it send again"


def test_everybody_in_the_object_has_to_be_at_the_limit() -> None:
    windows = SendWindows()
    sent(windows, 5, producer=1)
    sent(windows, 1, producer=2)
    assert not windows.are_used_up
    sent(windows, 4, producer=2)
    assert windows.are_used_up


def test_producers_in_earlier_objects_only_do_not_matter() -> None:
    windows = SendWindows()
    sent(windows, 1, producer=2)
    windows.rotated()
    sent(windows, 5, producer=1)
    assert windows.are_used_up


def test_a_producer_without_idempotence_may_send_any_number() -> None:
    windows = SendWindows()
    sent(windows, 5)
    windows.sent(PLAIN)
    assert not windows.are_used_up
    windows.rotated()
    sent(windows, 1)
    assert windows.are_used_up, "it matters for the object that it is in"


def test_who_had_more_on_its_way_can_send_as_much_again() -> None:
    """Five requests of a client may hold the batches of many partitions."""
    windows = SendWindows()
    first = sent(windows, 40)
    windows.rotated()
    sent(windows, 10)
    windows.answered(first)
    assert not windows.are_used_up
    sent(windows, 40)
    assert windows.are_used_up


def test_what_was_waited_for_in_vain_is_not_waited_for_again() -> None:
    windows = SendWindows()
    first = sent(windows, 40)
    windows.rotated()
    windows.answered(first[:20])
    sent(windows, 10)
    assert not windows.are_used_up
    windows.waited()
    assert windows.are_used_up
    sent(windows, 1)
    assert windows.are_used_up


def test_less_than_five_is_never_all_that_a_producer_can_send() -> None:
    windows = SendWindows()
    sent(windows, 2)
    windows.waited()
    assert not windows.are_used_up


@given(st.lists(st.tuples(st.integers(-1, 3), st.booleans())))
def test_what_is_remembered_is_what_waits_for_its_answer(steps: list[tuple[int, bool]]) -> None:
    windows, model = SendWindows(), Counter[int]()
    for producer, is_sent in steps:
        one = BATCHES.get(producer, PLAIN)
        if is_sent:
            windows.sent(one)
            model[one.header.producer_id] += one.header.has_producer_id
        elif model[one.header.producer_id]:
            windows.rotated()  # an answer comes for what is in an object
            windows.answered([one])
            model[one.header.producer_id] -= 1
        else:
            windows.answered([PLAIN])
    assert {producer: window.used for producer, window in windows._windows.items()} == +model
