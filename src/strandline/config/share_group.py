"""Settings of one share group, as tools set them on resources of type GROUP: how its records are delivered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.config.declare import BOOLEAN, INT, STRING, Declaration, declarations_of, setting
from strandline.config.names import unknown_name
from strandline.config.sharing import ShareSettings
from strandline.errors import InvalidConfig

_BY_DURATION: Final = "by_duration:"
_ISO_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """The settings in force for one share group: its overrides, and the broker's settings for everything else."""

    share_record_lock_duration_ms: int = setting(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        "How long a member may keep a record before it is given to others.",
        least=1000,
        broker_name="group.share.record.lock.duration.ms",
    )
    share_delivery_count_limit: int = setting(
        "share.delivery.count.limit",
        INT,
        5,
        "How often a record is delivered before it is given up.",
        least=2,
        broker_name="group.share.delivery.count.limit",
    )
    share_partition_max_record_locks: int = setting(
        "share.partition.max.record.locks",
        INT,
        2000,
        "How far the records of a partition that are delivered may reach beyond the first that is not settled.",
        least=100,
        broker_name="group.share.partition.max.record.locks",
    )
    share_auto_offset_reset: str = setting(
        "share.auto.offset.reset",
        STRING,
        "latest",
        "Where a group begins to read a partition: earliest, latest, or by_duration:PnDTnHnMn.nS ago.",
        may_be_empty=False,
    )
    share_isolation_level: str = setting(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        "Whether records of transactions are delivered before they are committed, and those of aborted ones.",
        allowed=("read_committed", "read_uncommitted"),
    )
    share_renew_acknowledge_enable: bool = setting(
        "share.renew.acknowledge.enable", BOOLEAN, True, "Members may ask for more time for a record."
    )

    @property
    def reads_committed(self) -> bool:
        return self.share_isolation_level == "read_committed"


SHARE_GROUP_DECLARATIONS: Final[Mapping[str, Declaration]] = declarations_of(ShareGroupConfig)

# The broker's value and its limits for what groups set.
_OF_BROKER: Final[Mapping[str, tuple[str, str, str]]] = {
    "share.record.lock.duration.ms": (
        "group_share_record_lock_duration_ms",
        "group_share_min_record_lock_duration_ms",
        "group_share_max_record_lock_duration_ms",
    ),
    "share.delivery.count.limit": (
        "group_share_delivery_count_limit",
        "group_share_min_delivery_count_limit",
        "group_share_max_delivery_count_limit",
    ),
    "share.partition.max.record.locks": (
        "group_share_partition_max_record_locks",
        "group_share_min_partition_max_record_locks",
        "group_share_max_partition_max_record_locks",
    ),
}


def share_group_config(overrides: Mapping[str, str], broker: ShareSettings) -> ShareGroupConfig:
    """The settings in force for a group. A value outside the broker's limits counts as the nearest limit: the limits
    may have been changed since it was set. Unknown names are left out."""
    values: dict[str, Any] = {}
    for name, declaration in SHARE_GROUP_DECLARATIONS.items():
        given = overrides.get(name)
        value = declaration.default if given is None else declaration.parse(given)
        if name in _OF_BROKER:
            usual, least, most = (int(getattr(broker, attribute)) for attribute in _OF_BROKER[name])
            value = min(max(usual if given is None else int(str(value)), least), most)
        values[declaration.attribute] = value
    return ShareGroupConfig(**values)


def validate_share_group_overrides(overrides: Mapping[str, str], broker: ShareSettings) -> None:
    """Raise InvalidConfig if a group may not have these overrides on a broker with these settings."""
    for name, text in overrides.items():
        declaration = SHARE_GROUP_DECLARATIONS.get(name)
        if declaration is None:
            raise unknown_name(name, SHARE_GROUP_DECLARATIONS, what="a setting of share groups")
        value = declaration.parse(text)
        if name == "share.auto.offset.reset":
            reset_age_ms(text)
        elif name in _OF_BROKER:
            _, least, most = (int(getattr(broker, attribute)) for attribute in _OF_BROKER[name])
            if not least <= int(str(value)) <= most:
                raise InvalidConfig(
                    f"{name} must be from {least} to {most}, the limits of {declaration.broker_name}, but is {text}."
                )


def reset_age_ms(text: str) -> int | None:
    """How long before now a group begins to read; 0: at the end, None: at the beginning. Raises InvalidConfig."""
    stripped = text.strip()
    if stripped.lower() in ("latest", "earliest"):
        return 0 if stripped.lower() == "latest" else None
    if stripped.startswith(_BY_DURATION):
        found = _ISO_DURATION.fullmatch(stripped.removeprefix(_BY_DURATION))
        if found is not None and any(found.groupdict().values()):
            return int(sum(float(number) * _MS[unit] for unit, number in found.groupdict().items() if number))
    raise InvalidConfig(
        f"share.auto.offset.reset must be latest, earliest or by_duration:PnDTnHnMn.nS, but is {text!r}."
    )
