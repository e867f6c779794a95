"""The `simple` assignor: everything is read, by as few members as possible, in equal parts, and stays where it is."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.groups.modern.partitions import Partitions, pairs
from strandline.coordinators.groups.share.assignor import ShareAssignorMember, assign_simply

TOPICS = tuple(uuid.UUID(int=at) for at in range(1, 5))
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7), min_size=1)


def partitions_of(counts: Mapping[uuid.UUID, int]) -> Partitions:
    return {topic_id: frozenset(range(count)) for topic_id, count in counts.items()}


def names(count: int) -> list[str]:
    return [f"m{at:02}" for at in range(count)]


def assigned(
    members: list[str], counts: Mapping[uuid.UUID, int], before: Mapping[str, Partitions] | None = None
) -> Mapping[str, Partitions]:
    """All members subscribe to all topics."""
    known = before or {}
    spec = {one: ShareAssignorMember(topics=frozenset(counts), target=known.get(one, {})) for one in members}
    return assign_simply(spec, partitions_of(counts))


def sizes(targets: Mapping[str, Partitions]) -> list[int]:
    return [sum(map(len, target.values())) for target in targets.values()]


def readers(targets: Mapping[str, Partitions]) -> Counter[tuple[uuid.UUID, int]]:
    return Counter(one for target in targets.values() for one in pairs(target))


@pytest.mark.parametrize(
    ("members", "partitions", "sharing", "expected"),
    [
        (1, 3, 1, {3: 1}),
        (2, 4, 1, {2: 2}),
        (2, 5, 1, {2: 1, 3: 1}),
        (3, 4, 1, {1: 2, 2: 1}),
        (3, 7, 1, {2: 2, 3: 1}),
        (4, 4, 1, {1: 4}),
        (5, 4, 2, {1: 2, 2: 3}),
        (6, 10, 1, {1: 2, 2: 4}),
        (7, 3, 3, {1: 5, 2: 2}),
        (8, 4, 2, {1: 8}),
        (9, 4, 3, {1: 6, 2: 3}),
        (10, 6, 2, {1: 8, 2: 2}),
        (13, 5, 3, {1: 11, 2: 2}),
        (200, 3, 67, {1: 199, 2: 1}),
    ],
)
def test_parts_have_kafkas_sizes(members: int, partitions: int, sharing: int, expected: Mapping[int, int]) -> None:
    """How many members read a partition, and how many members have how many: what Apache Kafka 4.3.1 gave."""
    targets = assigned(names(members), {TOPICS[0]: partitions})
    assert set(readers(targets).values()) == {sharing}
    assert Counter(sizes(targets)) == expected


@given(st.integers(1, 12), COUNTS, st.integers(1, 12), COUNTS)
def test_a_change_keeps_the_balance(
    count: int, counts: Mapping[uuid.UUID, int], later: int, later_counts: Mapping[uuid.UUID, int]
) -> None:
    first = assigned(names(count), counts)
    second = assigned(names(later), later_counts, first)
    for targets, known in ((first, counts), (second, later_counts)):
        found = readers(targets)
        assert set(found) == {(topic_id, at) for topic_id, number in known.items() for at in range(number)}
        sharing = -(-len(targets) // sum(known.values()))
        assert max(found.values()) <= sharing
        assert max(sizes(targets)) <= -(-sharing * sum(known.values()) // len(targets))


@given(st.integers(1, 12), COUNTS)
def test_nothing_moves_without_a_reason(count: int, counts: Mapping[uuid.UUID, int]) -> None:
    first = assigned(names(count), counts)
    assert assigned(names(count), counts, first) == first


@given(st.integers(1, 6), st.integers(2, 6))
def test_a_member_keeps_its_part_when_another_one_joins(count: int, width: int) -> None:
    counts = {TOPICS[0]: count * width}
    before = assigned(names(count), counts)
    after = assigned(names(count + 1), counts, before)
    for member in names(count):
        assert set(pairs(after[member])) <= set(pairs(before[member]))


SUBSCRIPTIONS = st.lists(st.frozensets(st.sampled_from(TOPICS), max_size=4), min_size=1, max_size=8)


@given(SUBSCRIPTIONS, SUBSCRIPTIONS, COUNTS, st.data())
def test_members_with_other_topics(
    early: list[frozenset[uuid.UUID]],
    late: list[frozenset[uuid.UUID]],
    counts: Mapping[uuid.UUID, int],
    data: st.DataObject,
) -> None:
    """Whatever was before: what somebody subscribes to is read, and nobody reads what it does not subscribe to."""
    assignable = {
        topic_id: data.draw(st.frozensets(st.integers(0, count - 1), min_size=1)) for topic_id, count in counts.items()
    }
    before: Mapping[str, Partitions] = {}
    for subscriptions in (early, late):
        spec = {
            one: ShareAssignorMember(topics=topics, target=before.get(one, {}))
            for one, topics in zip(names(len(subscriptions)), subscriptions, strict=True)
        }
        targets = assign_simply(spec, assignable)
        wanted = frozenset().union(*subscriptions)
        found = readers(targets)
        assert set(found) == {one for one in pairs(assignable) if one[0] in wanted}
        for member, target in targets.items():
            assert set(target) <= spec[member].topics
            assert all(target.values())
        for topic_id, at in found:
            subscribers = sum(topic_id in topics for topics in subscriptions)
            if len(set(subscriptions)) > 1:
                assert found[topic_id, at] <= -(-subscribers // len(assignable[topic_id]))
        before = targets


def test_nobody_and_nothing() -> None:
    assert assign_simply({}, partitions_of({TOPICS[0]: 2})) == {}
    assert assign_simply({"m": ShareAssignorMember(topics=frozenset())}, {}) == {"m": {}}
    assert assigned(["m"], {TOPICS[0]: 0}) == {"m": {}}
