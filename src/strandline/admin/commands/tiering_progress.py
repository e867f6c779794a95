"""Progress bars of `strandline tiering run` on a terminal: one for each job of Spark that runs."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from strandline.tiering.driver.lines import LineReporter


class ProgressReporter(LineReporter):
    """Lines as everywhere, above bars for what runs now."""

    wants_progress = True

    def __init__(self, console: Console) -> None:
        super().__init__(as_json=False, write=lambda line: console.print(Text(line), soft_wrap=True))
        self._progress = Progress(
            BarColumn(bar_width=16),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("tasks", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            # Last: the names of many partitions are cut, and nothing else is.
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=console,
            transient=True,
        )
        self._bars: dict[str, TaskID] = {}

    def job_runs(self, job: str, description: str, *, done: int, total: int) -> None:
        if not self._bars:
            self._progress.start()
        if job not in self._bars:
            self._bars[job] = self._progress.add_task(description, total=total)
        self._progress.update(self._bars[job], completed=done)

    def job_ended(self, job: str) -> None:
        bar = self._bars.pop(job, None)
        if bar is not None:
            self._progress.remove_task(bar)
            if not self._bars:
                self._progress.stop()
