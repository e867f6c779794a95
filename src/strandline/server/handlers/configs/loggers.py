"""Log levels of a running broker, as the config APIs show and change them (resource type BROKER_LOGGER, KIP-412)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from strandline.errors import InvalidConfig, InvalidRequest
from strandline.metadata import ConfigChange, ConfigOperation

ROOT: Final = "root"
_PACKAGE: Final = "strandline"
# Kafka's names, most severe first. Python has no TRACE: it is below DEBUG.
_LEVELS: Final[Mapping[str, int]] = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}


class BrokerLoggers:
    """The loggers of this process: the root and those of the package."""

    def levels(self) -> Mapping[str, str]:
        """The level in force of each logger, by name."""
        return {name: _level_name(_logger(name).getEffectiveLevel()) for name in self._names()}

    def _names(self) -> list[str]:
        known = (name for name in logging.root.manager.loggerDict if name.partition(".")[0] == _PACKAGE)
        return [ROOT, *sorted(known)]

    def alter(self, changes: Sequence[ConfigChange], *, validate_only: bool) -> None:
        """Make all changes or none. Raises InvalidConfig, InvalidRequest."""
        names = set(self._names())
        for change in changes:
            _check(change, names)
        if not validate_only:
            for change in changes:
                is_set = change.operation is ConfigOperation.SET and change.value is not None
                _logger(change.key).setLevel(_LEVELS[change.value or ""] if is_set else logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level_name(level: int) -> str:
    return next((name for name, least in _LEVELS.items() if level >= least), "TRACE")


def _check(change: ConfigChange, names: set[str]) -> None:
    if change.operation not in (ConfigOperation.SET, ConfigOperation.DELETE):
        raise InvalidRequest(f"{change.operation.name} cannot be applied to the level of logger {change.key}.")
    if change.key not in names:
        raise InvalidConfig(f"There is no logger {change.key}.")
    if change.operation is ConfigOperation.DELETE and change.key == ROOT:
        raise InvalidRequest("The level of the root logger can be set, not removed.")
    if change.operation is ConfigOperation.SET and change.value not in _LEVELS:
        raise InvalidConfig(f"{change.value} is not a log level; {', '.join(_LEVELS)} are.")
