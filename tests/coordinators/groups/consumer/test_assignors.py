"""The uniform and the range assignor: everything assigned once, balanced, sticky, co-partitioned."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.groups.consumer.assignors import (
    ASSIGNORS,
    AssignmentSpec,
    AssignorMember,
    assign_ranges,
    assign_uniformly,
)
from strandline.coordinators.groups.modern.partitions import Partitions, pairs

A, B, C = (uuid.UUID(int=number) for number in (1, 2, 3))
TOPICS = (A, B, C)


def member(*topics: uuid.UUID, instance_id: str | None = None) -> AssignorMember:
    return AssignorMember(topics=frozenset(topics), instance_id=instance_id)


def spec(counts: Mapping[uuid.UUID, int], **members: AssignorMember) -> AssignmentSpec:
    return AssignmentSpec(members=members, partition_counts=counts)


def after(given_spec: AssignmentSpec, assigned: Mapping[str, Partitions], **others: AssignorMember) -> AssignmentSpec:
    """The next assignment: members have their targets, and others join."""
    members = {member_id: replace(known, target=assigned[member_id]) for member_id, known in given_spec.members.items()}
    return replace(given_spec, members={**members, **others})


def test_ranges_of_two_topics_have_the_same_numbers() -> None:
    assigned = assign_ranges(spec({A: 5, B: 5}, m1=member(A, B), m2=member(A, B)))
    assert assigned == {
        "m1": {A: frozenset({0, 1, 2}), B: frozenset({0, 1, 2})},
        "m2": {A: frozenset({3, 4}), B: frozenset({3, 4})},
    }


def test_ranges_of_different_subscriptions_are_cut_for_each_topic() -> None:
    assigned = assign_ranges(spec({A: 4, B: 3}, m1=member(A), m2=member(A, B), m3=member(B)))
    assert assigned == {
        "m1": {A: frozenset({0, 1})},
        "m2": {A: frozenset({2, 3}), B: frozenset({0, 1})},
        "m3": {B: frozenset({2})},
    }


def test_static_members_keep_their_ranges_under_other_ids() -> None:
    before = assign_ranges(spec({A: 3}, m1=member(A, instance_id="i2"), m2=member(A, instance_id="i1"), a0=member(A)))
    again = assign_ranges(spec({A: 3}, m9=member(A, instance_id="i2"), m2=member(A, instance_id="i1"), a0=member(A)))
    assert before["m1"] == again["m9"] == {A: frozenset({1})}
    assert before["m2"] == {A: frozenset({0})}
    assert before["a0"] == {A: frozenset({2})}


def test_more_members_than_partitions_leave_some_without() -> None:
    for assign in ASSIGNORS.values():
        assigned = assign(spec({A: 2}, m1=member(A), m2=member(A), m3=member(A)))
        assert sorted(len(partitions) for partitions in assigned.values()) == [0, 1, 1]


def test_a_member_that_joins_gets_what_is_too_much_for_the_others() -> None:
    alone = spec({A: 3}, m1=member(A))
    both = assign_uniformly(after(alone, assign_uniformly(alone), m2=member(A)))
    assert both == {"m1": {A: frozenset({0, 1})}, "m2": {A: frozenset({2})}}


def test_the_uniform_assignor_balances_members_and_not_topics() -> None:
    assigned = assign_uniformly(spec({A: 1, B: 1, C: 1}, m1=member(A, B, C), m2=member(A, B, C), m3=member(A, B, C)))
    assert Counter(len(partitions) for partitions in assigned.values()) == {1: 3}


def test_a_member_with_a_topic_of_its_own_leaves_the_shared_one_to_others() -> None:
    assigned = assign_uniformly(spec({A: 4, B: 4}, m1=member(A, B), m2=member(A)))
    assert assigned == {"m1": {B: frozenset(range(4))}, "m2": {A: frozenset(range(4))}}


SPECS = st.builds(
    AssignmentSpec,
    members=st.dictionaries(
        st.sampled_from([f"m{number}" for number in range(8)]),
        st.builds(AssignorMember, topics=st.frozensets(st.sampled_from(TOPICS))),
        min_size=1,
    ),
    partition_counts=st.fixed_dictionaries({topic: st.integers(0, 12) for topic in TOPICS}),
)
SAME = st.frozensets(st.sampled_from(TOPICS), min_size=1)


def check(given_spec: AssignmentSpec, assigned: Mapping[str, Partitions]) -> None:
    """Every member has an entry, and every partition one owner, who subscribes to it."""
    assert assigned.keys() == given_spec.members.keys()
    owned = Counter(partition for partitions in assigned.values() for partition in pairs(partitions))
    subscribed = frozenset().union(*(known.topics for known in given_spec.members.values()))
    wanted = {(topic, number) for topic in subscribed for number in range(given_spec.partition_counts[topic])}
    assert owned == dict.fromkeys(wanted, 1)
    for member_id, partitions in assigned.items():
        assert partitions.keys() <= given_spec.members[member_id].topics
        assert all(partitions.values())


@pytest.mark.parametrize("name", ASSIGNORS)
@given(given_spec=SPECS)
def test_every_partition_has_exactly_one_owner_who_reads_it(name: str, given_spec: AssignmentSpec) -> None:
    check(given_spec, ASSIGNORS[name](given_spec))


@given(given_spec=SPECS, topics=SAME, leaves=st.integers(0, 7), joins=st.integers(0, 3))
def test_same_subscriptions_are_balanced_and_sticky(
    given_spec: AssignmentSpec, topics: frozenset[uuid.UUID], leaves: int, joins: int
) -> None:
    """Sizes differ by one at most, and no more partitions move than have to."""
    same = replace(given_spec, members={member_id: member(*topics) for member_id in given_spec.members})
    before = assign_uniformly(same)
    gone = sorted(same.members)[leaves % len(same.members)]
    later = after(same, before, **{f"n{number}": member(*topics) for number in range(joins)})
    later = replace(later, members={m: known for m, known in later.members.items() if m != gone or not joins})
    assigned = assign_uniformly(later)
    check(later, assigned)
    sizes = {member_id: sum(1 for _ in pairs(partitions)) for member_id, partitions in assigned.items()}
    assert max(sizes.values()) - min(sizes.values()) <= 1
    for member_id, size in sizes.items():
        had = set(pairs(before.get(member_id, {})))
        kept = had & set(pairs(assigned[member_id]))
        assert len(kept) >= min(len(had), sum(sizes.values()) // len(sizes)), "a partition moved without need"
        assert size >= len(kept)


@given(given_spec=SPECS)
def test_an_assignment_that_is_made_again_moves_nothing(given_spec: AssignmentSpec) -> None:
    assigned = assign_uniformly(given_spec)
    assert assign_uniformly(after(given_spec, assigned)) == assigned


@given(given_spec=SPECS)
def test_subscribers_of_a_topic_differ_by_one_if_they_can(given_spec: AssignmentSpec) -> None:
    """Whoever has a partition that another subscriber could take has at most one more than that one."""
    assigned = assign_uniformly(given_spec)
    loads = {member_id: sum(1 for _ in pairs(partitions)) for member_id, partitions in assigned.items()}
    for member_id, partitions in assigned.items():
        for topic in partitions:
            others = [load for other, load in loads.items() if topic in given_spec.members[other].topics]
            assert loads[member_id] - min(others) <= 1
