"""The striped placer: spread over racks and brokers, fenced brokers last, Kafka's refusals."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.clock import SystemChance
from strandline.errors import InvalidReplicationFactor
from strandline.metadata.plans.placement import UsableBroker, place_partitions


def brokers(*racks: str | None) -> list[UsableBroker]:
    """Broker 0, 1, 2, … in these racks."""
    return [UsableBroker(node_id, rack, False) for node_id, rack in enumerate(racks)]


usable = st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9).map(
    lambda given: [UsableBroker(node_id, rack, fenced) for node_id, (rack, fenced) in enumerate(given)]
)


@given(usable=usable, data=st.data(), count=st.integers(1, 40), seed=st.integers())
def test_every_partition_gets_distinct_replicas_and_an_unfenced_leader(
    usable: list[UsableBroker], data: st.DataObject, count: int, seed: int
) -> None:
    factor = data.draw(st.integers(1, len(usable)))
    fenced = {broker.node_id for broker in usable if broker.fenced}
    if len(fenced) == len(usable):
        with pytest.raises(InvalidReplicationFactor, match="All brokers are currently fenced"):
            place_partitions(count, factor, usable, SystemChance(seed))
        return
    placed = place_partitions(count, factor, usable, SystemChance(seed))
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas) <= {broker.node_id for broker in usable}
        assert replicas[0] not in fenced


@given(seed=st.integers(), factor=st.integers(1, 3))
def test_replicas_are_spread_over_all_racks(seed: int, factor: int) -> None:
    racks = ["a", "b", "c", "a", "b", "c"]
    for replicas in place_partitions(30, factor, brokers(*racks), SystemChance(seed)):
        assert len({racks[node] for node in replicas}) == factor


@given(seed=st.integers(), count=st.integers(1, 5))
def test_leaders_are_spread_evenly(seed: int, count: int) -> None:
    """Each broker leads as often as any other after each whole round."""
    placed = place_partitions(6 * count, 1, brokers("a", "b", "c", "a", "b", "c"), SystemChance(seed))
    assert set(Counter(replicas[0] for replicas in placed).values()) == {count}


@given(seed=st.integers())
def test_one_rack_is_enough(seed: int) -> None:
    placed = place_partitions(9, 3, brokers(None, None, None), SystemChance(seed))
    assert set(Counter(replicas[0] for replicas in placed).values()) == {3}


def test_fenced_brokers_are_used_only_when_the_others_do_not_suffice() -> None:
    usable = [UsableBroker(1, "a", False), UsableBroker(2, "a", True), UsableBroker(3, "a", False)]
    for replicas in place_partitions(20, 2, usable, SystemChance(1)):
        assert 2 not in replicas
    for replicas in place_partitions(20, 3, usable, SystemChance(1)):
        assert replicas[-1] == 2


def test_a_replication_factor_that_cannot_be_is_refused() -> None:
    with pytest.raises(
        InvalidReplicationFactor, match=r"3 cannot be reached because only 2 broker\(s\) are registered"
    ):
        place_partitions(1, 3, brokers(None, None), SystemChance(1))
    with pytest.raises(InvalidReplicationFactor, match="larger than 0"):
        place_partitions(1, 0, brokers(None), SystemChance(1))
    with pytest.raises(InvalidReplicationFactor, match="fenced"):
        place_partitions(1, 1, [], SystemChance(1))


@given(seed=st.integers())
def test_added_partitions_go_on_where_the_last_ones_stopped(seed: int) -> None:
    racks = brokers("a", "b", "c")
    existing = [(0, 1), (1, 2)]
    (added,) = place_partitions(1, 2, racks, SystemChance(seed), existing)
    assert added == (2, 0)
    (added,) = place_partitions(1, 1, brokers(None, None, None), SystemChance(seed), [(1,)])
    assert added == (2,)
    place_partitions(1, 1, racks, SystemChance(seed), [(99,)])  # that broker is gone


def test_chance_decides_where_it_begins() -> None:
    starts = {place_partitions(1, 1, brokers(None, None, None, None), SystemChance(seed))[0] for seed in range(50)}
    assert starts == {(0,), (1,), (2,), (3,)}
