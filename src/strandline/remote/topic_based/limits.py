"""The settings of the topic-based metadata manager: deadlines, pauses and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from strandline.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLimits:
    """The settings with the prefix `rlmm.config.`, and values without a setting. Times in seconds."""

    consume_wait: float = 120.0
    """Deadline of a write: its partition is ready, and the record has been read back."""
    retry_interval: float = 0.1
    """The first pause between two attempts to create or read the topic."""
    retry_max_timeout: float = 120.0
    """After so many seconds of failures they are logged as errors; attempts go on."""
    read_wait: float = 5.0
    """How long one read waits for new records."""
    snapshot_interval: float = 300.0
    """Snapshots of changed metadata partitions are written at this interval."""

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        """Parse the settings. Raises InvalidConfig."""
        return cls(
            consume_wait=_seconds(config, "remote.log.metadata.consume.wait.ms", 120_000),
            retry_interval=_seconds(config, "remote.log.metadata.initialization.retry.interval.ms", 100),
            retry_max_timeout=_seconds(config, "remote.log.metadata.initialization.retry.max.timeout.ms", 120_000),
        )


def _seconds(config: Mapping[str, str], name: str, default_ms: int) -> float:
    text = config.get(name, str(default_ms))
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidConfig(f"rlmm.config.{name} is {text!r}; it must be a number of milliseconds, 0 or more.")
    return value / 1000
