"""Timestamps for records that real brokers keep."""

from __future__ import annotations

from typing import Final

from strandline.clock import SystemClock

_DAY_MS: Final = 86_400_000

# Yesterday, and the same in test processes that start one after the other. A fixed date grows old while nobody looks:
# then records expire whenever a broker happens to look for old ones.
T0: Final = SystemClock().now_ms() // _DAY_MS * _DAY_MS - _DAY_MS
