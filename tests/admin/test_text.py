"""Numbers and bytes as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.admin.text import duration, preview, size, timestamp


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (9949, "9.9 KB"), (9951, "10 KB"), (999_499, "999 KB"),
        (999_500, "1.0 MB"), (5 * 10**9, "5.0 GB"), (10**20, "100000 PB"),
    ],
)  # fmt: skip
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3725, "1 h 2 min"), (90_061, "1 d 1 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_timestamps() -> None:
    assert timestamp(1_700_000_000_007) == "2023-11-14 22:13:20.007"
    assert timestamp(-1) == "-"
    assert timestamp(2**63 - 1) == str(2**63 - 1)


def test_previews() -> None:
    assert preview(None) == "null"
    assert preview(b"") == ""
    assert preview("grüße".encode()) == "grüße"
    assert preview(b"\x00\xff") == "0x00ff"
    assert preview(b"a\nb") == "0x610a62"
    assert preview(b"abcdef", 4) == "abc…"


@given(st.binary(max_size=40), st.integers(2, 50))
def test_a_preview_is_printable_and_short(data: bytes, limit: int) -> None:
    text = preview(data, limit)
    assert text.isprintable()
    assert len(text) <= limit
