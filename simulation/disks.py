"""What files hold after their machine has lost its power: what was forced to disk, and some of the rest.

Logs lie in memory, in ordinary files. While `Disks` are installed, the calls that decide what a disk keeps are noted:
what fsync makes safe, and which files were cut or replaced since. As on a file system with a journal, cuts and
replacements reach the disk in their order, and all of them do with the next fsync of any file. Bytes that were only
written may be there or not, from the end of each file backwards, or there are zeros in their place. A process that dies
loses nothing.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class _Change(NamedTuple):
    """A change of a file that the journal has to tell of: it was cut, or another content has replaced it."""

    path: str
    length: int
    content: bytes | None


class Disks:
    """All disks of a run, one in each directory below the root."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}/"
        self._safe: dict[str, bytes] = {}
        self._journals: dict[str, list[_Change]] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Note what happens to files, as long as the block lasts."""
        fsync, replace, ftruncate = os.fsync, os.replace, os.ftruncate

        def noting_fsync(fd: Any) -> None:
            path = _path_of(fd)
            if path.startswith(self._root):
                self._synced(path)
            else:
                fsync(fd)

        def noting_ftruncate(fd: Any, length: int) -> None:
            path = _path_of(fd)
            if path.startswith(self._root):
                self._journal(path).append(_Change(path, length, None))
            ftruncate(fd, length)

        def noting_replace(source: Any, target: Any, **options: Any) -> None:
            is_directory = os.path.isdir(source)
            replace(source, target, **options)
            if str(target).startswith(self._root):
                self._moved(str(source), str(target), is_directory=is_directory)

        os.fsync, os.replace, os.ftruncate = noting_fsync, noting_replace, noting_ftruncate  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync, os.replace, os.ftruncate = fsync, replace, ftruncate

    def _journal(self, path: str) -> list[_Change]:
        return self._journals.setdefault(path[len(self._root) :].split("/")[0], [])

    def _synced(self, path: str) -> None:
        journal = self._journal(path)
        for change in journal:
            self._apply(change)
        journal.clear()
        if os.path.isfile(path):
            self._safe[path] = Path(path).read_bytes()

    def _moved(self, source: str, target: str, *, is_directory: bool) -> None:
        if is_directory:
            for path in [path for path in self._safe if path.startswith(f"{source}/")]:
                self._safe[f"{target}{path[len(source) :]}"] = self._safe.pop(path)
        else:
            self._safe.pop(source, None)
            self._journal(target).append(_Change(target, 0, Path(target).read_bytes()))

    def _apply(self, change: _Change) -> None:
        if change.content is not None:
            self._safe[change.path] = change.content
        elif change.path in self._safe:
            self._safe[change.path] = self._safe[change.path][: change.length]

    def lose_power(self, directory: Path, chance: random.Random) -> None:
        """A machine dies: its files become what its disk holds."""
        journal = self._journal(f"{directory}/")
        for change in journal[: chance.randrange(len(journal) + 1)]:
            self._apply(change)
        journal.clear()
        for path in sorted(directory.rglob("*")):
            if not path.is_file():
                continue
            now, safe = path.read_bytes(), self._safe.get(str(path))
            after = _surviving_log(now, safe or b"", chance) if path.suffix == ".log" else safe
            if after is None:
                path.unlink()
                continue
            if after != now:
                path.write_bytes(after)
            self._safe[str(path)] = after

    def wipe(self, directory: Path) -> None:
        """A new disk takes the place of the old one."""
        shutil.rmtree(directory)
        directory.mkdir()
        self._journal(f"{directory}/").clear()
        for path in [path for path in self._safe if path.startswith(f"{directory}/")]:
            del self._safe[path]


def _path_of(fd: Any) -> str:
    return os.readlink(f"/proc/self/fd/{fd if isinstance(fd, int) else fd.fileno()}")


def _surviving_log(now: bytes, safe: bytes, chance: random.Random) -> bytes:
    """What was forced to disk, and some of what was written behind it."""
    if safe == now or not now.startswith(safe):
        return safe
    kind = chance.random()
    if kind < 0.3:
        return now
    if kind < 0.5:
        return safe
    kept = now[: chance.randrange(len(safe), len(now) + 1)]
    return kept if kind < 0.8 else kept + bytes(len(now) - len(kept))
