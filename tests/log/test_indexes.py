"""The three indexes of a segment: lookups, growth, truncation, files as Kafka leaves them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import KafkaStorageError
from strandline.log.index_file import LoadedIndexes
from strandline.log.offset_index import OffsetIndex, OffsetPosition
from strandline.log.time_index import IndexedTimestamp, TimeIndex
from strandline.log.transaction_index import AbortedTxn, TransactionIndex

BASE = 1_000

ascending = st.lists(st.integers(1, 1000), max_size=60).map(
    lambda steps: [sum(steps[: i + 1]) for i in range(len(steps))]
)


class TestOffsetIndex:
    @given(steps=ascending, target=st.integers(0, 70_000))
    def test_a_lookup_finds_the_last_entry_not_above(self, steps: list[int], target: int) -> None:
        index = OffsetIndex("", BASE)
        index.reset()
        for step in steps:
            index.append(BASE + step, step * 7)
        wanted = max((step * 7 for step in steps if step <= target), default=0)
        assert index.lookup(BASE + target) == wanted
        after = [BASE + step for step in steps if step * 7 >= target]
        assert index.offset_at_or_after(target) == (after[0] if after else None)

    @given(steps=ascending, target=st.integers(0, 70_000), split=st.integers(0, 60))
    def test_entries_survive_files_and_truncation(self, steps: list[int], target: int, split: int) -> None:
        with tempfile.TemporaryDirectory() as directory:
            index = OffsetIndex(directory, BASE)
            index.create()
            for number, step in enumerate(steps):
                index.append(BASE + step, step)
                if number == split:
                    index.write()
            index.truncate_to(BASE + target)
            index.write()
            kept = [OffsetPosition(BASE + step, step) for step in steps if step < target]
            again = OffsetIndex(directory, BASE)
            assert again.entries == index.entries == kept
            assert again.last == (kept[-1] if kept else (BASE, 0))
            assert Path(index.path).stat().st_size == 8 * len(kept)

    def test_a_preallocated_tail_is_not_taken_for_entries(self, tmp_path: Path) -> None:
        index = OffsetIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">iiii", 5, 100, 9, 256) + bytes(4096 - 16))
        assert index.entries == [(BASE + 5, 100), (BASE + 9, 256)]
        index.append(BASE + 20, 512)
        index.write()
        assert Path(index.path).read_bytes() == pack(">iiiiii", 5, 100, 9, 256, 20, 512)

    def test_part_of_an_entry_behind_a_preallocated_tail_is_left_out(self, tmp_path: Path) -> None:
        index = OffsetIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">ii", 5, 100) + bytes(16) + b"abc")
        assert index.entries == [(BASE + 5, 100)]
        index.append(BASE + 20, 512)
        index.write()
        assert Path(index.path).read_bytes() == pack(">iiii", 5, 100, 20, 512)

    def test_entries_out_of_order_are_noticed(self, tmp_path: Path) -> None:
        index = OffsetIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">iiii", 9, 100, 5, 200))
        assert not index.is_sane()

    def test_a_missing_file_is_an_empty_index(self, tmp_path: Path) -> None:
        assert OffsetIndex(str(tmp_path), BASE).entries == []

    def test_clearing_cuts_the_file(self, tmp_path: Path) -> None:
        index = OffsetIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">ii", 5, 100))
        index.clear()
        assert index.write()
        assert Path(index.path).read_bytes() == b""


class TestTimeIndex:
    @given(steps=ascending, target=st.integers(0, 70_000))
    def test_a_lookup_finds_the_last_entry_not_newer(self, steps: list[int], target: int) -> None:
        index = TimeIndex("", BASE)
        index.reset()
        for step in steps:
            index.maybe_append(step, BASE + step)
        wanted = max((step for step in steps if step <= target), default=None)
        assert index.lookup(target) == ((-1, BASE) if wanted is None else (wanted, BASE + wanted))

    @given(stamps=st.lists(st.integers(0, 50), max_size=30))
    def test_timestamps_only_ascend(self, stamps: list[int]) -> None:
        index = TimeIndex("", BASE)
        index.reset()
        for number, stamp in enumerate(stamps):
            index.maybe_append(stamp, BASE + number)
        kept = [entry.timestamp for entry in index.entries]
        assert kept == sorted(set(kept))
        assert kept[-1:] == ([max(stamps)] if stamps else [])
        assert index.is_sane()

    @given(steps=ascending, target=st.integers(0, 70_000))
    def test_truncation_keeps_what_lies_below(self, steps: list[int], target: int) -> None:
        with tempfile.TemporaryDirectory() as directory:
            index = TimeIndex(directory, BASE)
            index.create()
            for step in steps:
                index.maybe_append(step, BASE + step)
            index.write()
            index.truncate_to(BASE + target)
            index.write()
            kept = [IndexedTimestamp(step, BASE + step) for step in steps if step < target]
            again = TimeIndex(directory, BASE)
            assert again.last == (kept[-1] if kept else (-1, BASE))
            assert again.entries == kept

    def test_the_last_entry_is_read_without_the_rest(self, tmp_path: Path) -> None:
        index = TimeIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">qiqi", 10, 1, 20, 2))
        assert index.last == (20, BASE + 2)
        assert index.memory_bytes == 0

    def test_the_last_entry_in_front_of_a_preallocated_tail(self, tmp_path: Path) -> None:
        index = TimeIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">qiqi", 10, 1, 20, 2) + bytes(1200))
        assert index.last == (20, BASE + 2)

    def test_part_of_an_entry_behind_a_preallocated_tail_is_left_out(self, tmp_path: Path) -> None:
        index = TimeIndex(str(tmp_path), BASE)
        Path(index.path).write_bytes(pack(">qi", 10, 1) + bytes(24) + b"abc")
        assert index.last == (10, BASE + 1)
        index.maybe_append(20, BASE + 2)
        index.write()
        assert Path(index.path).read_bytes() == pack(">qiqi", 10, 1, 20, 2)


class TestTransactionIndex:
    ENTRIES = (AbortedTxn(1, 1000, 1010, 1005), AbortedTxn(2, 1005, 1020, 1021))

    def test_entries_are_on_disk_at_once(self, tmp_path: Path) -> None:
        index = TransactionIndex(str(tmp_path), BASE, exists=False)
        assert index.is_empty
        for entry in self.ENTRIES:
            index.append(entry)
        again = TransactionIndex(str(tmp_path), BASE, exists=True)
        assert tuple(again) == self.ENTRIES
        assert Path(index.path).stat().st_size == 2 * 34

    @given(ascending, st.integers(-5, 5_000))
    def test_a_read_is_told_of_markers_from_its_offset_on(self, steps: list[int], target: int) -> None:
        offset = BASE + target
        with tempfile.TemporaryDirectory() as directory:
            index = TransactionIndex(directory, BASE, exists=False)
            for step in steps:
                index.append(AbortedTxn(1, BASE, BASE + step, BASE + step + 1))
            assert list(index.ending_from(offset)) == [one for one in index if one.last_offset >= offset]

    def test_truncation_by_marker(self, tmp_path: Path) -> None:
        index = TransactionIndex(str(tmp_path), BASE, exists=False)
        for entry in self.ENTRIES:
            index.append(entry)
        index.truncate_to(1020)
        assert tuple(TransactionIndex(str(tmp_path), BASE, exists=True)) == self.ENTRIES[:1]
        index.truncate_to(1000)
        assert index.is_empty
        assert not Path(index.path).exists()

    @pytest.mark.parametrize(
        "content",
        [
            b"short",
            pack(">hqqqq", 1, 1, 1000, 1010, 1011),
            pack(">hqqqq", 0, 1, 10, 20, 21),
            pack(">hqqqq", 0, 1, 5, 1005, 9) * 2,
        ],
        ids=["cut", "version", "below base", "twice"],
    )
    def test_damage_is_noticed(self, tmp_path: Path, content: bytes) -> None:
        index = TransactionIndex(str(tmp_path), BASE, exists=True)
        Path(index.path).write_bytes(content)
        assert not index.is_sane()
        with pytest.raises(KafkaStorageError):
            list(index)


def test_the_cache_unloads_the_least_recently_used(tmp_path: Path) -> None:
    cache = LoadedIndexes(capacity=200)
    indexes = [OffsetIndex(str(tmp_path), base) for base in (0, 100, 200)]
    for index in indexes:
        index.create()
        for step in range(1, 11):
            index.append(index.base_offset + step, step)
        index.write()
    cache.touch(indexes[0])
    cache.touch(indexes[1])
    cache.touch(indexes[0])
    cache.touch(indexes[2])
    assert [index.is_loaded for index in indexes] == [True, False, True]
    assert cache.loaded_bytes == 160
    assert indexes[1].lookup(105) == 5
    cache.forget(indexes[2])
    assert cache.loaded_bytes == 80


def test_the_cache_keeps_what_is_not_on_disk(tmp_path: Path) -> None:
    cache = LoadedIndexes(capacity=1)
    first, second = OffsetIndex(str(tmp_path), 0), OffsetIndex(str(tmp_path), 100)
    for index in (first, second):
        index.create()
        index.append(index.base_offset + 1, 1)
    cache.touch(first)
    cache.touch(second)
    assert first.lookup(1) == 1
    assert first.is_loaded
