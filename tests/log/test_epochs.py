"""Leader epochs of a log."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from strandline.log.epochs import UNDEFINED, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs("", is_new=True)
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


def test_assigning_again_changes_nothing() -> None:
    made = epochs((1, 0), (3, 10))
    assert not made.assign(3, 15)
    assert list(made.entries) == [(1, 0), (3, 10)]


def test_an_epoch_without_records_gives_way() -> None:
    made = epochs((1, 0), (3, 10), (4, 10))
    assert list(made.entries) == [(1, 0), (4, 10)]
    made.assign(2, 5)
    assert list(made.entries) == [(1, 0), (2, 5)]


def test_end_offsets() -> None:
    made = epochs((2, 10), (4, 20), (7, 50))
    assert made.end_offset_for(-1, 99) == UNDEFINED
    assert made.end_offset_for(7, 99) == (7, 99)
    assert made.end_offset_for(8, 99) == UNDEFINED
    assert made.end_offset_for(1, 99) == (1, 10)
    assert made.end_offset_for(2, 99) == (2, 20)
    assert made.end_offset_for(3, 99) == (2, 20)
    assert made.end_offset_for(6, 99) == (4, 50)
    assert epochs().end_offset_for(3, 99) == UNDEFINED


def test_the_epoch_of_an_offset() -> None:
    made = epochs((2, 10), (4, 20))
    assert [made.epoch_of(offset) for offset in (9, 10, 19, 20, 1000)] == [None, 2, 2, 4, 4]


def test_truncation_from_the_end() -> None:
    made = epochs((2, 10), (4, 20))
    made.truncate_from_end(21)
    assert list(made.entries) == [(2, 10), (4, 20)]
    made.truncate_from_end(20)
    assert list(made.entries) == [(2, 10)]


def test_truncation_from_the_start() -> None:
    made = epochs((2, 10), (4, 20), (5, 30))
    made.truncate_from_start(10)
    assert list(made.entries) == [(2, 10), (4, 20), (5, 30)]
    made.truncate_from_start(25)
    assert list(made.entries) == [(4, 25), (5, 30)]
    made.truncate_from_start(30)
    assert list(made.entries) == [(5, 30)]
    made.truncate_from_start(99)
    assert list(made.entries) == [(5, 99)]


def test_the_file_keeps_what_a_crash_would_bring_back(tmp_path: Path) -> None:
    made = LeaderEpochs(str(tmp_path), is_new=True)
    made.replace([(2, 10), (4, 20), (5, 30), (7, 40)])
    made.truncate_from_start(25, kept_from=12)
    made.truncate_from_start(35, kept_from=12)
    assert list(made.entries) == [(5, 35), (7, 40)]
    assert made.end_offset_for(4, 50) == (4, 35)
    made.write()
    assert list(LeaderEpochs(str(tmp_path)).entries) == [(2, 10), (4, 20), (5, 30), (7, 40)]
    made.truncate_from_start(37, kept_from=35)
    made.write()
    assert list(LeaderEpochs(str(tmp_path)).entries) == [(5, 30), (7, 40)]
    made.truncate_from_start(45)
    made.write()
    assert list(LeaderEpochs(str(tmp_path)).entries) == [(7, 45)]


def test_the_file_is_read_when_first_needed(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    made = LeaderEpochs(str(tmp_path))
    made.clamp(5, 20)
    path.write_text("0\n3\n0 0\n2 10\n4 20\n")
    assert list(made.entries) == [(0, 5), (2, 10)]
    assert made.latest == 2


def test_an_epoch_reaches_the_disk_when_told_so(tmp_path: Path) -> None:
    made = LeaderEpochs(str(tmp_path))
    made.assign(3, 0)
    assert not Path(made.path).exists()
    assert not made.needs_sync
    made.write()
    assert LeaderEpochs(str(tmp_path)).entries == ((3, 0),)
    assert made.needs_sync
    made.mark_synced(made.writes)
    made.write()
    assert not made.needs_sync


moves = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3)),
        st.tuples(st.just("end"), st.integers(0, 60)),
        st.tuples(st.just("start"), st.integers(0, 60)),
        st.tuples(st.just("checkpoint"), st.just(0)),
    ),
    max_size=40,
)


@given(moves)
def test_epochs_agree_with_a_list_of_records(steps: list[tuple[str, int]]) -> None:
    """The model: the epoch of every record in the log, and of those that a crash brings back with the old log start."""
    with TemporaryDirectory() as directory:
        made = LeaderEpochs(directory, is_new=True)
        log: dict[int, int] = {}
        start = checkpointed = end = epoch = 0
        for move, value in steps:
            if move == "append":
                epoch += value
                made.assign(epoch, end)
                log[end] = epoch
                end += 1
            elif move == "end":
                end = max(min(end, value), start)
                made.truncate_from_end(end)
                log = {offset: e for offset, e in log.items() if offset < end}
            elif move == "start":
                start = max(start, min(value, end))
                made.truncate_from_start(start, kept_from=checkpointed)
            else:
                checkpointed = start
            made.write()
            check(made, {offset: e for offset, e in log.items() if offset >= start})
            after_crash = LeaderEpochs(directory)
            after_crash.clamp(checkpointed, end)
            check(after_crash, {offset: e for offset, e in log.items() if offset >= checkpointed})


def check(made: LeaderEpochs, log: dict[int, int]) -> None:
    assert {offset: made.epoch_of(offset) for offset in log} == log
    entries = made.entries
    assert list(entries) == sorted(set(entries))
    assert len({s for _, s in entries}) == len(entries)
