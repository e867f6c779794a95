"""How long the description of remote segments waits for things, and where it keeps its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from strandline.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLimits:
    """The settings behind `rlmm.config.`, and what has no setting. Times in seconds."""

    consume_wait: float = 120.0
    """How long a write waits until it has been read back, and until its partition is ready."""
    retry_interval: float = 0.1
    """The pause between two attempts to make or read the topic."""
    retry_max_timeout: float = 120.0
    """After so many seconds without success an attempt is an error in the log; attempts go on."""
    read_wait: float = 5.0
    """How long one question for more records waits for them."""
    snapshot_interval: float = 300.0
    """How old the snapshot of a changed partition may get."""

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        """The limits that these settings ask for. Raises InvalidConfig."""
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
        raise InvalidConfig(f"rlmm.config.{name} is {text!r}; it must be a number of milliseconds, 0 or more")
    return value / 1000
