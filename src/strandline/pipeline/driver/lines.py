"""What a run says, line by line: sentences, or a JSON object for each event."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from threading import Lock
from typing import Final

from strandline.clock import Clock, SystemClock
from strandline.pipeline.driver.running import RunEnd

EXIT_FAILED: Final = 1
EXIT_STOPPED: Final = 130
_QUIET: Final = frozenset({"split-started", "merge-started"})
"""Their end says the same, and more."""


class LineReporter:
    """Writes to standard output, or where else it is told."""

    wants_progress = False

    def __init__(
        self, *, as_json: bool, write: Callable[[str], None] | None = None, clock: Clock | None = None
    ) -> None:
        self._as_json, self._clock = as_json, clock or SystemClock()
        self._write = write or _print
        self._lock = Lock()

    def say(self, event: str, sentence: str, /, **figures: object) -> None:
        if not self._as_json and event in _QUIET:
            return
        line = sentence
        if self._as_json:
            document = {"event": event, "at_ms": self._clock.now_ms(), "message": sentence, **figures}
            line = json.dumps(document, ensure_ascii=False)
        with self._lock:
            self._write(line)

    def job_runs(self, job: str, description: str, *, done: int, total: int) -> None:
        """Does nothing: lines do not show progress."""

    def job_ended(self, job: str) -> None:
        """Does nothing: lines do not show progress."""


def say_end(reporter: LineReporter, end: RunEnd, *, is_following: bool) -> int:
    """The last line of a run; its exit status."""
    sentence = end.tally.sentence()
    if end.troubles:
        sentence += f" {len(end.troubles)} failed: {' '.join(end.troubles)}"
    if end.was_stopped and not is_following:
        sentence = f"Stopped before the end. {sentence}"
    reporter.say("done", sentence, **asdict(end.tally), failing=list(end.troubles), was_stopped=end.was_stopped)
    if end.was_stopped:
        return 0 if is_following else EXIT_STOPPED
    return EXIT_FAILED if end.troubles else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
