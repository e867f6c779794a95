"""The options of the data source. Names are those of Spark's own Kafka source where it has the option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from strandline.config import load_properties
from strandline.errors import StrandlineError
from strandline.model import INT64_MAX
from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.positions import Positions, parse_positions
from strandline.reads import FetchIsolation

T = TypeVar("T")

# Settings of brokers that say how to reach the stores, and may be given as options.
_STORE_PREFIXES: Final = ("strandline.objects.", "inkless.", "rsm.config.", "remote.log.storage.")

KNOWN: Final = (
    "assign",
    "bootstrap",
    "bytesPerTask",
    "config",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "includeHeaders",
    "isolation",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "minPartitions",
    "pushFilters",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "subscribe",
    "timeoutMs",
    "topic",
)
_ALIASES: Final = {
    "kafka.bootstrap.servers": "bootstrap",
    "kafka.isolation.level": "isolation",
    "bootstrapservers": "bootstrap",
}
_BYTES_PER_TASK: Final = 64 << 20
_TIMEOUT_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What is to be read, and how."""

    bootstrap: str
    topics: tuple[str, ...]
    assigned: Mapping[str, tuple[int, ...]] | None
    """Only these partitions; None: all of the topics."""
    starting: Positions
    ending: Positions
    isolation: FetchIsolation
    include_headers: bool
    fail_on_data_loss: bool
    push_filters: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    bytes_per_task: int
    timeout_s: float
    store_settings: Mapping[str, str] = field(repr=False)
    """What is to be used instead of the brokers' settings: passwords, above all."""


def parse_options(given: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """The options of a query. Raises SourceFailed with a sentence that names the option."""
    options, stores = _sorted_out(given)
    assigned = _assigned(options)
    topics = tuple(assigned) if assigned is not None else _topics(options)
    wish = _Wish(options)
    ending = parse_positions(options, "ending", default="latest")
    if is_stream and ending != parse_positions({}, "ending", default="latest"):
        raise SourceFailed("A stream has no end: leave out endingOffsets and endingTimestamp, or use read.")
    return SourceOptions(
        bootstrap=wish.text("bootstrap", needed="host:port of one or more brokers, separated by commas"),
        topics=topics,
        assigned=assigned,
        starting=parse_positions(options, "starting", default="latest" if is_stream else "earliest"),
        ending=ending,
        isolation=wish.choice(
            "isolation",
            {
                "read_uncommitted": FetchIsolation.HIGH_WATERMARK,
                "read_committed": FetchIsolation.TXN_COMMITTED,
            },
            "read_uncommitted",
        ),
        include_headers=wish.yes_or_no("includeHeaders", default=False),
        fail_on_data_loss=wish.yes_or_no("failOnDataLoss", default=True),
        push_filters=wish.yes_or_no("pushFilters", default=True),
        min_partitions=wish.number("minPartitions"),
        max_records_per_partition=wish.number("maxRecordsPerPartition"),
        max_offsets_per_trigger=wish.number("maxOffsetsPerTrigger"),
        bytes_per_task=wish.number("bytesPerTask") or _BYTES_PER_TASK,
        timeout_s=(wish.number("timeoutMs") or _TIMEOUT_MS) / 1000,
        store_settings={**_config(options), **stores},
    )


def _sorted_out(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Our options by their names, and settings of stores. Spark does not tell upper from lower case."""
    names = {name.lower(): name for name in KNOWN}
    options: dict[str, str] = {}
    stores: dict[str, str] = {}
    for key, value in given.items():
        lower = key.lower()
        name = names.get(_ALIASES.get(lower, lower).lower())
        if name is not None:
            options[name] = value
        elif lower.startswith(_STORE_PREFIXES):
            stores[lower] = value
        else:
            raise SourceFailed(
                f"The data source strandline has no option {key}. It has {', '.join(KNOWN)}, and the settings of "
                f"brokers that begin with {', '.join(_STORE_PREFIXES)}."
            )
    return options, stores


def _topics(options: Mapping[str, str]) -> tuple[str, ...]:
    if "topic" in options and "subscribe" in options:
        raise SourceFailed("The options topic and subscribe mean the same: give one of them.")
    text = options.get("topic", options.get("subscribe", ""))
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise SourceFailed("Which topic? Give the option topic, or several names in it, separated by commas.")
    return topics


def _assigned(options: Mapping[str, str]) -> dict[str, tuple[int, ...]] | None:
    if "assign" not in options:
        return None
    if "topic" in options or "subscribe" in options:
        raise SourceFailed("The option assign names topics itself: leave out topic and subscribe.")
    text = options["assign"]
    try:
        found = {str(topic): tuple(sorted(set(map(int, partitions)))) for topic, partitions in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise SourceFailed(f'The option assign has to be JSON like {{"orders": [0, 2]}}, and is {text}.') from error
    if not found or not all(found.values()):
        raise SourceFailed(f"The option assign names no partition: {text}.")
    return found


def _config(options: Mapping[str, str]) -> dict[str, str]:
    """The settings in the file that `config` names, on the driver."""
    path = options.get("config")
    if not path:
        return {}
    try:
        return load_properties(Path(path))
    except (OSError, StrandlineError) as error:
        raise SourceFailed(f"The file of the option config, {path}, cannot be read: {error}") from error


class _Wish:
    """Options as values."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def text(self, name: str, *, needed: str) -> str:
        value = self._options.get(name, "").strip()
        if not value:
            raise SourceFailed(f"The option {name} is missing: {needed}.")
        return value

    def yes_or_no(self, name: str, *, default: bool) -> bool:
        return self.choice(name, {"true": True, "false": False}, str(default).lower())

    def number(self, name: str) -> int | None:
        """A number above 0; None if it is not given."""
        value = self._options.get(name)
        if value is None:
            return None
        try:
            number = int(value)
        except ValueError:
            number = 0
        if not 0 < number <= INT64_MAX:
            raise SourceFailed(f"The option {name} has to be a whole number above 0, and is {value}.")
        return number

    def choice(self, name: str, choices: Mapping[str, T], default: str) -> T:
        value = self._options.get(name, default).strip().lower()
        if value not in choices:
            raise SourceFailed(f"The option {name} has to be {' or '.join(choices)}, and is {value}.")
        return choices[value]
