"""A clock that does not fit what was written last is told at the start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.log.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS
from strandline.log.last_written import check_clock
from strandline.testing.clock import VirtualClock

HOUR_S = 3600


def said(directories: list[Path], caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    check_clock(map(str, directories), VirtualClock())
    return [record.getMessage() for record in caplog.records]


def write(directory: Path, name: str, ago_s: int) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text("0\n0\n")
    moment = VirtualClock().now_ms() // 1000 - ago_s
    os.utime(directory / name, (moment, moment))


def test_the_newest_checkpoint_of_all_directories_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert said([one, two], caplog) == [], "a new broker has written nothing"
    write(one, RECOVERY_POINTS, 49 * HOUR_S)
    (sentence,) = said([one, two], caplog)
    assert f"the last checkpoint in {one} is 2 days, 1:00:00 old" in sentence
    assert "its clock is ahead" in sentence
    write(two, HIGH_WATERMARKS, HOUR_S)
    assert said([one, two], caplog) == []
    write(two, HIGH_WATERMARKS, -2 * HOUR_S)
    (sentence,) = said([one, two], caplog)
    assert f"the last checkpoint in {two} is from 2:00:00 in the future" in sentence
