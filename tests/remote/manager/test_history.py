"""Which remote segments belong to a log: the scenarios of KIP-405, and every history that is small enough to try."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from strandline.remote.manager.history import EpochEntry, LogHistory, covers, highest_copied_offset, with_records
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata
from tests.remote.manager.world import FINISHED, TIERED

NOTHING: dict[int, int] = {}


def segment(start: int, end: int, epochs: Mapping[int, int], number: int = 1) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(TIERED, UUID(int=number)),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=0,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_in_bytes=100,
        segment_leader_epochs=epochs,
        state=FINISHED,
    )


def is_in_lineage(copied: RemoteLogSegmentMetadata, epochs: Sequence[EpochEntry], log_end: int) -> bool:
    return copied in LogHistory(epochs, log_end)


def test_scenario_1_all_segments_of_the_only_leader_belong() -> None:
    epochs = [(0, 0), (1, 3), (2, 5), (3, 7)]
    assert is_in_lineage(segment(0, 2, {0: 0}), epochs, 8)
    assert is_in_lineage(segment(3, 5, {1: 3, 2: 5}), epochs, 8)


def test_scenario_2_segments_that_are_gone_locally_belong_by_their_epochs() -> None:
    epochs = [(0, 0), (1, 3), (2, 5), (3, 7)]
    assert is_in_lineage(segment(6, 8, {2: 6, 3: 7}), epochs, 12)
    assert not is_in_lineage(segment(6, 8, {2: 6, 3: 8}), epochs, 12)


def test_scenario_3_records_that_two_hard_failures_have_lost_do_not_belong() -> None:
    epochs = [(0, 0), (1, 1)]
    assert not is_in_lineage(segment(0, 1, {0: 0}), epochs, 3)
    assert is_in_lineage(segment(1, 1, {1: 1}), epochs, 3)
    assert highest_copied_offset(epochs[:1], 1, {0: 1}.get) == 0
    assert highest_copied_offset(epochs, 3, {0: 1, 1: 1}.get) == 1


def test_scenario_4_after_an_unclean_election_only_what_the_new_leader_has_belongs() -> None:
    epochs = [(0, 0), (1, 1)]
    assert not is_in_lineage(segment(0, 2, {0: 0}), epochs, 3)
    assert is_in_lineage(segment(0, 1, {0: 0, 1: 1}), epochs, 3)
    assert highest_copied_offset(epochs, 3, {0: 2}.get) == 0


def test_scenario_5_when_histories_part_twice_each_leader_has_its_own_segments() -> None:
    first, second, third = segment(0, 3, {0: 0}, 1), segment(0, 3, {0: 0, 1: 2}, 2), segment(4, 5, {0: 4, 2: 5}, 3)
    of_a, of_b, of_a_again = [(0, 0)], [(0, 0), (1, 2)], [(0, 0), (2, 5)]
    assert [is_in_lineage(s, of_a, 5) for s in (first, second)] == [True, False]
    assert [is_in_lineage(s, of_b, 5) for s in (first, second)] == [False, True]
    assert [is_in_lineage(s, of_a_again, 7) for s in (first, second, third)] == [True, False, True]


def test_a_segment_that_ends_at_or_above_the_end_of_the_log_does_not_belong() -> None:
    assert is_in_lineage(segment(0, 8, {0: 0}), [(0, 0)], 9)
    assert not is_in_lineage(segment(0, 9, {0: 0}), [(0, 0)], 9)


def test_epochs_without_records_do_not_matter_on_either_side() -> None:
    assert with_records([(0, 0), (1, 5), (2, 5), (4, 8)]) == [(0, 0), (2, 5), (4, 8)]
    assert is_in_lineage(segment(0, 7, {0: 0, 1: 5, 2: 5}), [(0, 0), (2, 5), (4, 8)], 9)
    assert is_in_lineage(segment(0, 7, {0: 0, 2: 5}), [(0, 0), (1, 5), (2, 5)], 9)


def test_an_overlapping_segment_belongs_after_the_log_start_has_moved_into_it() -> None:
    whole = segment(14, 150, {5: 14, 7: 15, 9: 100})
    assert is_in_lineage(whole, [(5, 10), (7, 15), (9, 100)], 200)
    assert is_in_lineage(whole, [(7, 51), (9, 100)], 200)
    assert is_in_lineage(whole, [(9, 120)], 200)


def test_without_epochs_nothing_belongs() -> None:
    assert not is_in_lineage(segment(0, 1, {0: 0}), [], 10)
    assert highest_copied_offset([], 10, NOTHING.get) == -1


def test_the_highest_copied_offset_is_of_the_newest_epoch_that_has_one() -> None:
    assert highest_copied_offset([(0, 0), (2, 10), (5, 20)], 30, {0: 9, 2: 14}.get) == 14
    assert highest_copied_offset([(0, 0), (2, 10), (5, 20)], 30, {0: 9, 2: 25}.get) == 19
    assert highest_copied_offset([(0, 0), (2, 10), (5, 20)], 30, {5: 40}.get) == 29
    assert highest_copied_offset([(0, 0)], 30, NOTHING.get) == -1


def test_a_segment_covers_another_only_with_all_of_its_offsets_and_epochs() -> None:
    wide = segment(0, 9, {0: 0, 1: 5})
    assert covers(wide, segment(0, 4, {0: 0}))
    assert covers(wide, segment(5, 9, {1: 5}))
    assert not covers(wide, segment(5, 10, {1: 5}))
    assert not covers(wide, segment(5, 9, {2: 5}))


class Branch(NamedTuple):
    """A log as one leader left it: the epoch of the record at each offset."""

    epochs: tuple[int, ...]

    def entries(self, start: int = 0) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for offset in range(start, len(self.epochs)):
            if not found or found[-1][0] != self.epochs[offset]:
                found.append((self.epochs[offset], offset))
        return found


def histories(leaders: int, longest: int) -> Iterator[list[Branch]]:
    """Every way in which leaders can follow each other: each begins with a part of some earlier log, however short.

    That is what unclean elections allow, and all that they allow: an epoch has one leader, and one beginning.
    """

    def after(branches: list[Branch]) -> Iterator[list[Branch]]:
        if len(branches) == leaders:
            yield branches
            return
        parents = {parent.epochs[:cut] for parent in branches for cut in range(len(parent.epochs) + 1)}
        for prefix in parents or {()}:
            for written in range(1, longest - len(prefix) + 1):
                yield from after([*branches, Branch(prefix + (len(branches),) * written)])

    yield from after([])


def test_every_small_history_segments_belong_exactly_if_their_records_are_those_of_the_log() -> None:
    checked = belong = 0
    for branches in histories(leaders=3, longest=4):
        for leader, copier in itertools.product(branches, repeat=2):
            for start, end in itertools.combinations(range(len(copier.epochs) + 1), 2):
                copied = segment(start, end - 1, dict(Branch(copier.epochs[:end]).entries(start)))
                for log_start in range(min(end, len(leader.epochs))):
                    shared = range(max(start, log_start), end)
                    expected = end <= len(leader.epochs) and all(
                        leader.epochs[offset] == copier.epochs[offset] for offset in shared
                    )
                    found = is_in_lineage(copied, leader.entries(log_start), len(leader.epochs))
                    assert found == expected, (leader, copier, start, end, log_start)
                    checked, belong = checked + 1, belong + expected
    assert checked > 10_000
    assert 0.1 < belong / checked < 0.9


def test_every_small_history_a_new_leader_goes_on_after_what_is_there_of_its_own_log() -> None:
    for branches in histories(leaders=3, longest=4):
        for leader, copier in itertools.product(branches, repeat=2):
            for copied in range(len(copier.epochs)):
                highest = {epoch: offset for offset, epoch in enumerate(copier.epochs[: copied + 1])}
                found = highest_copied_offset(leader.entries(), len(leader.epochs), highest.get)
                # Everything up to there is a record that both have, or lies in an epoch that both have.
                assert found < len(leader.epochs)
                if leader == copier:
                    assert found == copied
                elif found >= 0:
                    assert leader.epochs[found] in copier.epochs[: copied + 1]
