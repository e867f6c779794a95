"""Progress bars of `strandline tiering run` on a terminal: one for each job of Spark that runs."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from strandline.pipeline.driver.lines import LineReporter

_BESIDE: Final = 42
"""Columns that the bar and its figures take."""


class ProgressReporter(LineReporter):
    """Lines as everywhere, above bars for what runs now."""

    wants_progress = True

    def __init__(self, console: Console) -> None:
        super().__init__(as_json=False, write=lambda line: console.print(Text(line), soft_wrap=True))
        self._progress = Progress(
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("tasks"),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._bars: dict[str, TaskID] = {}

    def job_runs(self, job: str, description: str, *, done: int, total: int) -> None:
        if not self._bars:
            self._progress.start()
        if job not in self._bars:
            # A line that is too long would cut the bar.
            room = max(self._progress.console.width - _BESIDE, _BESIDE)
            short = description if len(description) <= room else f"{description[: room - 1]}…"
            self._bars[job] = self._progress.add_task(short, total=total)
        self._progress.update(self._bars[job], completed=done)

    def job_ended(self, job: str) -> None:
        bar = self._bars.pop(job, None)
        if bar is not None:
            self._progress.remove_task(bar)
            if not self._bars:
                self._progress.stop()
