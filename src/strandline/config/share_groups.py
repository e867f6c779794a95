"""Settings of share groups: their members, sessions and assignments, of the broker and of one group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.config.declare import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    Declaration,
    attribute_of,
    declarations_of,
    setting,
)
from strandline.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    """Settings of the group coordinator for share groups."""

    group_share_session_timeout_ms: int = setting(
        "group.share.session.timeout.ms", INT, 45_000, "How long a member of a share group may be silent.", least=1
    )
    group_share_min_session_timeout_ms: int = setting(
        "group.share.min.session.timeout.ms", INT, 45_000, "The least session timeout that a group may set.", least=1
    )
    group_share_max_session_timeout_ms: int = setting(
        "group.share.max.session.timeout.ms", INT, 60_000, "The greatest session timeout that a group may set.", least=1
    )
    group_share_heartbeat_interval_ms: int = setting(
        "group.share.heartbeat.interval.ms",
        INT,
        5000,
        "How often members of share groups are told to send a heartbeat.",
        least=1,
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        "group.share.min.heartbeat.interval.ms",
        INT,
        5000,
        "The least heartbeat interval that a group may set.",
        least=1,
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        "group.share.max.heartbeat.interval.ms",
        INT,
        15_000,
        "The greatest heartbeat interval that a group may set.",
        least=1,
    )
    group_share_assignment_interval_ms: int = setting(
        "group.share.assignment.interval.ms",
        INT,
        1000,
        "The least time between two target assignments of a share group. Members that come and go within it are "
        "assigned together.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    group_share_min_assignment_interval_ms: int = setting(
        "group.share.min.assignment.interval.ms",
        INT,
        0,
        "The least assignment interval that a group may set.",
        least=0,
    )
    group_share_max_assignment_interval_ms: int = setting(
        "group.share.max.assignment.interval.ms",
        INT,
        15_000,
        "The greatest assignment interval that a group may set.",
        least=0,
    )
    group_share_max_size: int = setting(
        "group.share.max.size", INT, 200, "Members in one share group; further ones are refused.", least=1, most=1000
    )
    group_share_assignors: tuple[str, ...] = setting(
        "group.share.assignors",
        LIST,
        ("simple",),
        "Assignors of share groups.",
        allowed=("simple",),
        may_be_empty=False,
        no_effect="there is one, `simple`",
    )
    group_share_assignor_offload_enable: bool = setting(
        "group.share.assignor.offload.enable",
        BOOLEAN,
        True,
        "Whether assignments are computed in another thread.",
        no_effect="they are computed where the group is coordinated",
    )
    group_share_initialize_retry_interval_ms: int = setting(
        "group.share.initialize.retry.interval.ms",
        INT,
        30_000,
        "How long the creation of a group's state in the share coordinator may take before it is tried again. At "
        "least offsets.commit.timeout.ms.",
        least=1,
        is_internal=True,
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            attribute = what.replace(".", "_")
            least = getattr(self, f"group_share_min_{attribute}")
            value = getattr(self, f"group_share_{attribute}")
            most = getattr(self, f"group_share_max_{attribute}")
            if not least <= value <= most:
                raise InvalidConfig(
                    f"group.share.{what} must be from group.share.min.{what} ({least}) to group.share.max.{what} "
                    f"({most}), but is {value}."
                )
        if self.group_share_session_timeout_ms <= self.group_share_heartbeat_interval_ms:
            raise InvalidConfig(
                f"group.share.session.timeout.ms ({self.group_share_session_timeout_ms}) must be greater than "
                f"group.share.heartbeat.interval.ms ({self.group_share_heartbeat_interval_ms})."
            )


DEFAULT_SHARE_SETTINGS: Final = ShareGroupSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMembershipConfig:
    """The settings in force for the members of one group: its overrides, and the broker's settings for all else."""

    share_session_timeout_ms: int = setting(
        "share.session.timeout.ms",
        INT,
        45_000,
        "How long a member of the share group may be silent.",
        least=1,
        broker_name="group.share.session.timeout.ms",
    )
    share_heartbeat_interval_ms: int = setting(
        "share.heartbeat.interval.ms",
        INT,
        5000,
        "How often a member of the share group is told to send a heartbeat.",
        least=1,
        broker_name="group.share.heartbeat.interval.ms",
    )
    share_assignment_interval_ms: int = setting(
        "share.assignment.interval.ms",
        INT,
        1000,
        "The least time between two target assignments of the share group.",
        least=0,
        broker_name="group.share.assignment.interval.ms",
    )


SHARE_MEMBERSHIP_DECLARATIONS: Final[Mapping[str, Declaration]] = declarations_of(ShareMembershipConfig)

_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "share.session.timeout.ms": ("group_share_min_session_timeout_ms", "group_share_max_session_timeout_ms"),
    "share.heartbeat.interval.ms": ("group_share_min_heartbeat_interval_ms", "group_share_max_heartbeat_interval_ms"),
    "share.assignment.interval.ms": (
        "group_share_min_assignment_interval_ms",
        "group_share_max_assignment_interval_ms",
    ),
}


def share_membership(overrides: Mapping[str, str], broker: ShareGroupSettings) -> ShareMembershipConfig:
    """The settings in force for a group. A value outside the broker's limits counts as the nearest limit: the limits
    may have been changed since it was set. Other names are left out."""
    values: dict[str, Any] = {}
    for name, declaration in SHARE_MEMBERSHIP_DECLARATIONS.items():
        given = overrides.get(name)
        if given is None:
            value = int(getattr(broker, attribute_of(declaration.broker_name or name)))
        else:
            value = int(str(declaration.parse(given)))
        least, most = share_membership_limits(name, broker)
        values[declaration.attribute] = min(max(value, least), most)
    return ShareMembershipConfig(**values)


def share_membership_limits(name: str, broker: ShareGroupSettings) -> tuple[int, int]:
    """The least and the most that a group may set."""
    least, most = _LIMITS[name]
    return int(getattr(broker, least)), int(getattr(broker, most))
