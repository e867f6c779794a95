"""What the suite `streams` makes of counts that are not right."""

from __future__ import annotations

import pytest
from interop.records import Records
from interop.streams import Counted, jumps, missing


def _records(*counts: tuple[bytes, int]) -> Records:
    return {("counts", 0, offset): (word, b"%d" % count, 0) for offset, (word, count) in enumerate(counts)}


def _counted(output: Records) -> Counted:
    return Counted(words={"a": 2, "b": 1}, output=output, changelog={}, unread=0, ended_by_itself=False)


RIGHT = _records((b"a", 1), (b"b", 1), (b"a", 2))


def test_right_counts_are_accepted() -> None:
    assert jumps(RIGHT, int) == ""
    assert missing(_counted(RIGHT)) == ""


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(((b"a", 1), (b"a", 3)), id="a gap"),
        pytest.param(((b"a", 1), (b"a", 1), (b"a", 2)), id="a repetition"),
        pytest.param(((b"a", 2), (b"a", 3)), id="no beginning"),
        pytest.param((), id="nothing"),
    ],
)
def test_counts_that_do_not_rise_by_one_are_found(counts: tuple[tuple[bytes, int], ...]) -> None:
    assert jumps(_records(*counts), int)


def test_a_word_that_was_not_counted_to_the_end_is_found() -> None:
    assert missing(_counted(_records((b"a", 1), (b"b", 1)))) == "a: 1 of 2"
    assert missing(_counted(_records((b"a", 1), (b"a", 2)))) == "b: 0 of 1"
