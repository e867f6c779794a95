"""Large files are written around the page cache, whatever their size and their parts."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.objects.directory.direct_writes import write_directly

CHUNK = 2 * 1024 * 1024
PATTERN = bytes(range(251)) * (3 * CHUNK // 251 + 1)


def written(path: Path, parts: list[bytes]) -> bytes:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_directly(fd, [memoryview(part) for part in parts])
        assert not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT
    finally:
        os.close(fd)
    return path.read_bytes()


@pytest.mark.parametrize(
    "size", [0, 1, 4095, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 4096, 2 * CHUNK, 2 * CHUNK + 5000]
)
def test_a_file_of_any_size_holds_what_was_given(tmp_path: Path, size: int) -> None:
    assert written(tmp_path / "file", [PATTERN[:size]]) == PATTERN[:size]


@given(cuts=st.lists(st.integers(0, CHUNK + 9000), max_size=12).map(sorted))
def test_parts_of_any_size_follow_each_other(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    parts = [PATTERN[start:end] for start, end in zip([0, *cuts], [*cuts, CHUNK + 9000], strict=True)]
    assert written(tmp_path_factory.mktemp("parts") / "file", parts) == PATTERN[: CHUNK + 9000]


def test_a_call_that_writes_only_some_of_the_bytes_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, view: write(fd, view[: max(len(view) // 3 - 5, 1)]))
    assert written(tmp_path / "file", [PATTERN[: CHUNK + 9000]]) == PATTERN[: CHUNK + 9000]


def test_a_device_with_larger_blocks_is_written_through_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def refuse_direct(fd: int, view: memoryview) -> int:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return write(fd, view)

    monkeypatch.setattr(os, "write", refuse_direct)
    assert written(tmp_path / "file", [PATTERN[: CHUNK + 9000]]) == PATTERN[: CHUNK + 9000]


def test_a_file_system_without_direct_writes_is_written_through_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = fcntl.fcntl

    def refuse_direct(fd: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETFL and argument & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return control(fd, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", refuse_direct)
    assert written(tmp_path / "file", [PATTERN[: CHUNK + 9000]]) == PATTERN[: CHUNK + 9000]


def test_other_errors_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, view: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / "file", [PATTERN[:CHUNK]])
