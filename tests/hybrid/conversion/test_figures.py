"""What runs of the pipeline say that needs somebody to look: until they say otherwise, or are silent."""

from __future__ import annotations

from strandline.hybrid.conversion.figures import TieringFigures


def test_what_fails_is_counted_until_its_run_says_otherwise_or_is_silent() -> None:
    figures = TieringFigures()
    figures.failing.heard("a", 2, until=10.0)
    figures.failing.heard("b", 1, until=20.0)
    assert figures.failing.total(now=5.0) == 3
    figures.failing.heard("a", 1, until=15.0)
    assert figures.failing.total(now=10.0) == 2
    assert figures.failing.total(now=16.0) == 1
    figures.failing.heard("b", 0, until=30.0)
    assert figures.failing.total(now=17.0) == 0
