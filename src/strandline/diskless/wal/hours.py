"""What the keys of WAL objects and of split files have in common: they begin with the hour of their creation.

The hour lets the search for orphans list only objects that are old enough.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from strandline.model import TimestampMs

HOUR_MS: Final = 3_600_000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class HourlyKey(Protocol):
    """The parts of a key."""

    @property
    def hour_ms(self) -> TimestampMs:
        """The beginning of the hour in which the object was created, by the clock of its writer."""


class HourlyKeys(Protocol):
    """A kind of object: the modules `keys` and `split_keys` are such."""

    @property
    def PREFIX(self) -> str: ...

    def hour_prefix(self, timestamp_ms: TimestampMs) -> str:
        """The common prefix of the keys of all objects created in the hour of `timestamp_ms`."""

    def parse(self, key: str) -> HourlyKey | None:
        """The parts of a key; None if it is not that of such an object."""


def hour_text(timestamp_ms: TimestampMs) -> str:
    """The hour of a moment, as it is in keys: ten digits."""
    # Added to the epoch: fromtimestamp() refuses times that a wrong clock may show.
    return f"{_EPOCH + timedelta(milliseconds=timestamp_ms):%Y%m%d%H}"


def hour_of(text: str) -> TimestampMs:
    """The inverse of `hour_text`. Raises ValueError."""
    moment = datetime.strptime(text, "%Y%m%d%H").replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
