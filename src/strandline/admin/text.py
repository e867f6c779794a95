"""Numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from strandline.health import HealthStatus

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")


def size(count: int) -> str:
    """Bytes with a unit: 0 B, 999 B, 1.2 KB, 34 MB."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 9.95 else f"{value:.1f} {_UNITS[unit]}"


def count(number: float) -> str:
    """A number with thousands apart; a small one that is not whole with one decimal: 0, 0.4, 12, 1 234 567."""
    if 0 < number < 10 and number != int(number):
        return f"{number:.1f}"
    return f"{number:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def duration(seconds: float) -> str:
    """The two largest units: 5 s, 2 min 5 s, 3 h 10 min, 4 d 2 h."""
    whole = int(seconds)
    for (unit, length), (smaller, part) in pairwise((("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))):
        if whole >= length:
            return f"{whole // length} {unit} {whole % length // part} {smaller}"
    return f"{whole} s"


def timestamp(milliseconds: int) -> str:
    """A record's timestamp in UTC, or a dash for none."""
    if milliseconds < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{milliseconds % 1000:03d}"


def sentence(health: HealthStatus) -> str:
    """What is away, since when, and why, on one line."""
    since = timestamp(health.away_since_ms).partition(".")[0]
    why = " ".join(health.problem.split())
    what = health.what[:1].upper() + health.what[1:]
    return f"{what} ({health.url}) is away since {since} UTC, for {duration(health.away_seconds)}: {why}"


def preview(data: bytes | None, limit: int = 60) -> str:
    """Bytes as text where they are text, in hexadecimal where not, cut to `limit` characters."""
    if data is None:
        return "null"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "0x" + data.hex()
    else:
        text = text if text.isprintable() else "0x" + data.hex()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
