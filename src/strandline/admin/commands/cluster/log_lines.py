"""The lines of a broker's log that are shown on the terminal: warnings, errors, and what is no line of a log at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_MOST_LINES: Final = 20
_MOST_BYTES: Final = 1 << 20
_LEVEL: Final = re.compile(rb"\d{4}-\d\d-\d\d \S+ ([A-Z]+) ")
_QUIET: Final = (b"INFO", b"DEBUG")


class LogLines(NamedTuple):
    """What a log has got since it was looked at before."""

    lines: tuple[str, ...]
    left_out: int
    """How many more there are: a terminal is no place for thousands of them."""


class LogFollower:
    """Reads what is appended to a log file. What is in it already is of an earlier run, and is not shown."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0
        self._is_shown = True

    def read(self) -> LogLines:
        """Whole lines that are worth seeing. Of a megabyte or more only the end is read."""
        if not self._path.exists():
            return LogLines((), 0)
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            skipped = max(size - self._position - _MOST_BYTES, 0)
            file.seek(self._position + skipped)
            data = file.read(_MOST_BYTES)
        end = data.rfind(b"\n") + 1
        self._position += skipped + end
        shown = [line for line in data[:end].splitlines() if self._is_worth_seeing(line)]
        return LogLines(
            tuple(line.decode(errors="replace").rstrip() for line in shown[:_MOST_LINES]),
            max(len(shown) - _MOST_LINES, 0),
        )

    def _is_worth_seeing(self, line: bytes) -> bool:
        """A line without a level belongs to the one before it, such as a traceback."""
        found = _LEVEL.match(line)
        if found is not None:
            self._is_shown = found[1] not in _QUIET
        elif line.startswith(b"strandline: "):  # why the command has ended
            return True
        return self._is_shown and bool(line.strip())


def last_sentence(path: Path) -> str:
    """Why a broker has ended, as it says itself; empty if it does not."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, 2) - 4096, 0))
        lines = file.read().decode(errors="replace").rstrip().splitlines()
    return lines[-1].removeprefix("strandline: ") if lines and lines[-1].startswith("strandline: ") else ""
