"""The table of transactional ids counts what a look at all of them would count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState
from strandline.coordinators.transactions.table import TransactionTable

CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from(TransactionState), st.integers(0, 9)), max_size=20
)


@given(CHANGES)
def test_it_counts_what_it_holds(changes: list[tuple[str, TransactionState | None, int]]) -> None:
    table = TransactionTable()
    for name, state, start_ms in changes:
        if state is None:
            table.pop(name, None)
        else:
            table[name] = TransactionMetadata(
                transactional_id=name, producer_id=1, timeout_ms=1, last_update_ms=1, state=state, start_ms=start_ms
            )
        states = [one.state for one in table.values()]
        assert {each: count for each, count in table.by_state.items() if count} == {
            each: states.count(each) for each in set(states)
        }
        opened = [one.start_ms for one in table.values() if one.state is TransactionState.ONGOING]
        assert table.oldest_start_ms == min(opened, default=None)
        assert set(table.prepared) == {name for name, one in table.items() if one.state.is_prepared}
    table.clear()
    assert (len(table), table.oldest_start_ms, table.prepared) == (0, None, [])
    assert not any(table.by_state.values())
