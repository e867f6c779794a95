"""A crash at every step of a swap leaves the log as it was before it, or as it is after it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from strandline.records import Record
from tests.log.cleaning.support import CompactedLog


class Crash(BaseException):
    """The process dies here."""


def filled(directory: Path) -> CompactedLog:
    """Three segments with an aborted transaction and a snapshot each, of which cleaning makes one."""
    log = CompactedLog(directory)
    for round_ in range(3):
        for i in range(4):
            log.produce((b"k%d" % i, b"%d" % round_), (b"only-%d" % round_, b"v"))
        log.produce((b"k1", b"no"), producer_id=9, producer_epoch=0, base_sequence=round_, is_transactional=True)
        log.end_transaction(9, commit=False)
        log.roll()
    log.produce((b"k0", b"last"))
    return log


def newest(records: list[Record]) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {record.key: (record.offset, record.value) for record in records if record.value != b"no"}


async def crash_after(renames: int, log: CompactedLog, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Clean, and die before the rename with this number. False if there were fewer."""
    left = renames
    replace = os.replace

    def counting(source: str, target: str) -> None:
        nonlocal left
        if ".swap" in str(source) + str(target) or ".deleted" in str(target):
            if not left:
                raise Crash
            left -= 1
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", counting)
        try:
            await log.clean()
        except Crash:
            return True
    return False


async def test_a_crash_at_every_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = 0
    survived = set()
    while True:
        log = filled(tmp_path / f"data-{step}")
        before = log.records()
        end = log.log.log_end_offset
        crashed = await crash_after(step, log, monkeypatch)
        log.reload()
        assert newest(log.records()) == newest(before)
        assert log.offsets() == sorted(set(log.offsets()))
        assert set(log.records()) <= set(before)
        assert log.log.log_end_offset == end
        for suffix in (".cleaned", ".swap", ".deleted"):
            assert not log.files_ending_in(suffix)
        survived.add(len(log.records()))
        await log.clean()
        # Cleaning again finishes the work; the last record is in the active segment, which is left alone.
        assert log.offsets() == [*sorted(offset for offset, _ in newest(before[:-1]).values()), before[-1].offset]
        if not crashed:
            break
        step += 1
    assert step > 10
    assert len(survived) > 1, "some crashes came before the swap, some after it"


async def test_output_that_was_not_swapped_in_is_removed(tmp_path: Path) -> None:
    log = filled(tmp_path / "data")
    before = log.records()
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        (log.log.directory / f"{0:020d}{suffix}.cleaned").write_bytes(b"half a segment")
    log.reload()
    assert log.records() == before
    assert not log.files_ending_in(".cleaned")


async def test_readers_of_a_replaced_segment_can_finish(tmp_path: Path) -> None:
    log = filled(tmp_path / "data")
    held = log.log.segments.first.file
    size, content = held.size, held.read(0, held.size)
    await log.clean()
    assert log.log.segments.first.file is not held
    shutil.rmtree(log.log.directory)
    assert held.read(0, size) == content
