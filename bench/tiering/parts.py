"""The groups of the benchmark that are about the tiering pipeline."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Final

from bench.tiering import catch_up, convert, find, rows, source
from bench.tiering.place import TieringPlace, TieringStep

TIERING_PARTS: Final[Mapping[str, Callable[[TieringPlace], Generator[TieringStep]]]] = {
    "tiering-convert": convert.steps,
    "tiering-rows": rows.steps,
    "tiering-find": find.steps,
    "tiering-catch-up": catch_up.steps,
    "tiering-source": source.steps,
}
