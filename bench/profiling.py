"""Where does a broker's time go? py-spy samples its Python stacks during a measurement; perf adds the kernel's side."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

_RATE: Final = 100  # py-spy stops the process for each sample

# Innermost frames of threads that wait for work, which py-spy does not always recognise as idle.
_WAITING: Final = ("_worker (concurrent/futures/thread.py", "LogWriter._run (strandline/replication/writer.py")


class ProfilerMissing(RuntimeError):
    """py-spy could not be installed."""


def install_py_spy(cache: Path) -> Path:
    """The sampling profiler, from the package index into the cache, not the environment. Raises ProfilerMissing."""
    program = shutil.which("py-spy")
    if program is not None:
        return Path(program)
    tools = cache / "bench" / "tools"
    if not (tools / "bin" / "py-spy").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), "py-spy"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise ProfilerMissing(f"py-spy could not be installed: {run.stderr[-500:]}")
    return tools / "bin" / "py-spy"


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples by stack, outermost frame first, each frame as `function (file:line)`."""

    stacks: Counter[tuple[str, ...]]

    @classmethod
    def read(cls, collapsed: Path) -> Profile:
        stacks: Counter[tuple[str, ...]] = Counter()
        for line in collapsed.read_text().splitlines():
            text, _, count = line.rpartition(" ")
            stack = tuple(text.split(";"))
            if not stack[-1].startswith(_WAITING):
                stacks[stack] += int(count)
        return cls(stacks)

    @property
    def total(self) -> int:
        return sum(self.stacks.values())

    def own(self) -> Counter[str]:
        """Samples in which a line was the innermost."""
        lines: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            lines[stack[-1]] += count
        return lines

    def within(self) -> Counter[str]:
        """Samples in which a function was anywhere on the stack."""
        functions: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            for function in {frame.rpartition(":")[0] + ")" for frame in stack}:
                functions[function] += count
        return functions


@contextmanager
def sampled(py_spy: Path, pid: int, target: Path) -> Iterator[None]:
    """Sample a process during a block. Leaves `target`.txt (collapsed stacks) and, with perf, `target`.perf.txt."""
    target.parent.mkdir(parents=True, exist_ok=True)
    collapsed = target.with_suffix(".txt")
    spy = subprocess.Popen(
        [str(py_spy), "record", "-f", "raw", "-r", str(_RATE), "-o", str(collapsed), "--pid", str(pid), "-d", "3600"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    perf = _start_perf(pid, target)
    try:
        yield
    finally:
        for process in (spy, perf):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)
        if perf is not None:
            _write_perf_report(target)


def top_table(profile: Profile, title: str, rows: int = 25) -> Table:
    """The lines that took the time, and the functions they were called from."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in ("own %", "line", "with callees %", "function"):
        table.add_column(column, justify="right" if "%" in column else "left", overflow="fold")
    own, within = profile.own().most_common(rows), profile.within().most_common(rows)
    for (line, line_count), (function, function_count) in zip(own, within, strict=False):
        table.add_row(_share(line_count, profile), line, _share(function_count, profile), function)
    return table


def _share(count: int, profile: Profile) -> str:
    return f"{100 * count / max(profile.total, 1):.1f}"


def _start_perf(pid: int, target: Path) -> subprocess.Popen[bytes] | None:
    if shutil.which("perf") is None:
        return None
    command = ["perf", "record", "-F", str(_RATE), "-p", str(pid), "-o", str(target.with_suffix(".perf"))]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _write_perf_report(target: Path) -> None:
    """Symbols of the interpreter, its extensions and the kernel, most expensive first."""
    data = target.with_suffix(".perf")
    if not data.exists():
        return
    command = ["perf", "report", "-i", str(data), "--stdio", "--sort", "dso,symbol", "--percent-limit", "0.5"]
    run = subprocess.run(command, capture_output=True, text=True)
    target.with_suffix(".perf.txt").write_text(run.stdout)
    data.unlink()
