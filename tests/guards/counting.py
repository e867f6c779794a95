"""Instructions of the interpreter that a piece of work takes: the same whatever else the machine does."""

from __future__ import annotations

import math
import sys
from types import FrameType, TracebackType
from typing import Any, Self


class CountedInstructions:
    """Counts those of this thread within a block. Calls alone would not show a loop that calls nothing."""

    def __init__(self) -> None:
        self.total = self.longest_turn = self._turn_began = 0

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.settrace(None)
        self.end_turn()

    def end_turn(self) -> None:
        """Others have a turn of the event loop here."""
        self.longest_turn = max(self.longest_turn, self.total - self._turn_began)
        self._turn_began = self.total

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.total += event == "opcode"
        return self._trace


def exponent(small: tuple[int, float], large: tuple[int, float]) -> float:
    """1 is linear, 0 is independent of the size."""
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])
