"""Answers of the readers of all tiers, for tests."""

from __future__ import annotations

from strandline.errors import StrandlineError
from strandline.reads import ReadResult


def found(answer: ReadResult | StrandlineError | None) -> ReadResult:
    """The answer, which must be neither an error nor missing."""
    assert isinstance(answer, ReadResult), repr(answer)
    return answer
