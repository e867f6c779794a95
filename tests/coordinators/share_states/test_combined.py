"""Batches of delivery states, put together: against offsets one by one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.share_states import DeliveryBatch, DeliveryState, combined

S = DeliveryState
_BATCHES = st.lists(
    st.builds(
        lambda first, length, state, count: DeliveryBatch(first, first + length, state, count),
        st.integers(0, 30),
        st.integers(0, 10),
        st.sampled_from([S.AVAILABLE, S.ACKNOWLEDGED, S.ARCHIVED]),
        st.integers(1, 3),
    ),
    max_size=8,
)


@given(_BATCHES, st.integers(-1, 40))
def test_each_offset_has_its_largest_count_and_then_its_largest_state(batches: list[DeliveryBatch], start: int) -> None:
    model: dict[int, tuple[int, DeliveryState]] = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start), last + 1):
            model[offset] = max(model.get(offset, (0, S.AVAILABLE)), (count, state))
    found = combined(batches, start)
    assert {o: (b.delivery_count, b.state) for b in found for o in range(b.first_offset, b.last_offset + 1)} == model
    assert list(found) == sorted(found)
    for before, after in pairwise(found):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:], "these could be one batch"


def test_a_batch_is_cut_at_the_start_offset() -> None:
    assert combined([DeliveryBatch(0, 9, S.ACKNOWLEDGED, 1)], 4) == (DeliveryBatch(4, 9, S.ACKNOWLEDGED, 1),)
