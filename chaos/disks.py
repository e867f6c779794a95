"""A disk for each broker, which can be full, hang, or be slow: a file system in a file, in the mounts of the run."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.isolation import command

_BALLAST: Final = "ballast"
_FILES: Final = "100000"
_STEPS: Final = (1 << 24, 1 << 20, 1 << 16, 1 << 12)
# The program that freezes also thaws when its standard input ends, also since the run has ended: a process that waits
# for a frozen disk cannot be killed.
_HANG: Final = 'fsfreeze --freeze "$1"; echo; read _; fsfreeze --unfreeze "$1"'
_SLOW: Final = """
echo
while read -t 0.05 _; [ $? -gt 128 ]; do  # until the input ends
    fsfreeze --freeze "$1"
    sleep 0.2
    fsfreeze --unfreeze "$1"
done
"""


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk, by the directory where it is mounted."""

    path: Path

    @classmethod
    def mounted(cls, path: Path, *, size: int) -> Disk:
        """Make a file system of this size beside the directory, and mount it there. Raises OSError."""
        path.mkdir(parents=True, exist_ok=True)
        image = path.with_name(path.name + ".img")
        with image.open("wb") as file:
            file.truncate(size)
        command("mkfs.ext4", "-q", "-m", "0", "-N", _FILES, str(image))
        command("mount", "-o", "loop", str(image), str(path))
        (path / "lost+found").rmdir()  # no partition of a broker
        return cls(path)

    def unmount(self) -> None:
        """Raises OSError if a process still uses it."""
        command("umount", str(self.path))

    @contextmanager
    def full(self) -> Iterator[None]:
        """Not one more block can be had, until the end of the block."""
        ballast = self.path / _BALLAST
        try:
            with ballast.open("wb") as file:
                for step in _STEPS:
                    with suppress(_Full):
                        while True:
                            _extend(file.fileno(), step)
            yield
        finally:
            ballast.unlink(missing_ok=True)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """What writes waits until the end of the block."""
        with self._held(_HANG):
            yield

    @contextmanager
    def slow(self) -> Iterator[None]:
        """What writes waits for up to 0.2 seconds, most of the time."""
        with self._held(_SLOW):
            yield

    @contextmanager
    def _held(self, script: str) -> Iterator[None]:
        holder = subprocess.Popen(
            ["bash", "-c", script, "disk", str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        try:
            holder.stdout.readline()
            yield
        finally:
            holder.communicate()


class _Full(Exception):
    """There is no room for this step."""


def _extend(file: int, step: int) -> None:
    try:
        os.posix_fallocate(file, os.fstat(file).st_size, step)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _Full from error
        raise
