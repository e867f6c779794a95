"""Settings of one group, as tools set them on resources of type GROUP, and the broker settings they fall back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.config.declare import INT, Declaration, attribute_of, declarations_of, setting
from strandline.config.groups import GroupSettings
from strandline.config.names import unknown_name
from strandline.config.share_groups import (
    SHARE_MEMBERSHIP_DECLARATIONS,
    ShareGroupSettings,
    share_membership,
    share_membership_limits,
)
from strandline.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The settings in force for one group: its overrides, and the broker's settings for everything else."""

    consumer_session_timeout_ms: int = setting(
        "consumer.session.timeout.ms",
        INT,
        45_000,
        "How long a member of the consumer protocol may be silent.",
        least=1,
        broker_name="group.consumer.session.timeout.ms",
    )
    consumer_heartbeat_interval_ms: int = setting(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often a member of the consumer protocol is told to send a heartbeat.",
        least=1,
        broker_name="group.consumer.heartbeat.interval.ms",
    )
    consumer_assignment_interval_ms: int = setting(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        "The least time between two target assignments of the group.",
        least=0,
        broker_name="group.consumer.assignment.interval.ms",
    )


_CONSUMER_DECLARATIONS: Final[Mapping[str, Declaration]] = declarations_of(GroupConfig)
GROUP_DECLARATIONS: Final[Mapping[str, Declaration]] = {**_CONSUMER_DECLARATIONS, **SHARE_MEMBERSHIP_DECLARATIONS}

_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "consumer.session.timeout.ms": (
        "group_consumer_min_session_timeout_ms",
        "group_consumer_max_session_timeout_ms",
    ),
    "consumer.heartbeat.interval.ms": (
        "group_consumer_min_heartbeat_interval_ms",
        "group_consumer_max_heartbeat_interval_ms",
    ),
    "consumer.assignment.interval.ms": (
        "group_consumer_min_assignment_interval_ms",
        "group_consumer_max_assignment_interval_ms",
    ),
}


def group_config(overrides: Mapping[str, str], broker: GroupSettings) -> GroupConfig:
    """The settings in force for a group. A value outside the broker's limits counts as the nearest limit: the limits
    may have been changed since it was set. Unknown names are left out."""
    values: dict[str, Any] = {}
    for name, declaration in _CONSUMER_DECLARATIONS.items():
        least, most = _limits(name, broker)
        given = overrides.get(name)
        value = _broker_value(declaration, broker) if given is None else int(str(declaration.parse(given)))
        values[declaration.attribute] = min(max(value, least), most)
    return GroupConfig(**values)


def validate_group_overrides(overrides: Mapping[str, str], broker: GroupSettings, sharing: ShareGroupSettings) -> None:
    """Raise InvalidConfig if a group may not have these overrides on a broker with these settings."""
    for name, text in overrides.items():
        declaration = GROUP_DECLARATIONS.get(name)
        if declaration is None:
            raise unknown_name(name, GROUP_DECLARATIONS, what="a group setting")
        is_shared = name in SHARE_MEMBERSHIP_DECLARATIONS
        least, most = share_membership_limits(name, sharing) if is_shared else _limits(name, broker)
        if not least <= int(str(declaration.parse(text))) <= most:
            raise InvalidConfig(
                f"{name} must be from {least} to {most}, the limits of {declaration.broker_name}, but is {text}."
            )
    config = group_config(overrides, broker)
    if config.consumer_session_timeout_ms <= config.consumer_heartbeat_interval_ms:
        raise InvalidConfig(
            f"consumer.session.timeout.ms ({config.consumer_session_timeout_ms}) must be greater than "
            f"consumer.heartbeat.interval.ms ({config.consumer_heartbeat_interval_ms})."
        )
    shared = share_membership(overrides, sharing)
    if shared.share_session_timeout_ms <= shared.share_heartbeat_interval_ms:
        raise InvalidConfig(
            f"share.session.timeout.ms ({shared.share_session_timeout_ms}) must be greater than "
            f"share.heartbeat.interval.ms ({shared.share_heartbeat_interval_ms})."
        )


def _broker_value(declaration: Declaration, broker: GroupSettings) -> int:
    return int(getattr(broker, attribute_of(declaration.broker_name or declaration.name)))


def _limits(name: str, broker: GroupSettings) -> tuple[int, int]:
    least, most = _LIMITS[name]
    return int(getattr(broker, least)), int(getattr(broker, most))
