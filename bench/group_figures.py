"""Figures of consumer groups (KIP-848) and of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bench.figure import Figure, Target

_AS_SOON: Final = Target(1.01)
"""Within Kafka's time. Members learn what has changed with their next heartbeat, so both systems wait for the same two
of them, or one; a hundredth is what the same system differs by from one run to the next."""

SHARE_CASES: Final = ((1, "implicit"), (4, "implicit"), (1, "explicit"), (4, "explicit"))
"""Members of a share group, and how they acknowledge records."""


def group_figures() -> Iterable[Figure]:
    yield from _groups()
    yield from _share()


def _groups() -> Iterable[Figure]:
    section = "A consumer group (KIP-848) of 100 members over 1,000 partitions"
    for name, title, unit, target in (
        ("join", "from the start of 100 members to a stable assignment", "s", _AS_SOON),
        ("leave", "from 10 members leaving to a stable assignment", "s", _AS_SOON),
        ("join.p99", "heartbeats answered p99, 100 members join", "ms", None),
        ("leave.p99", "heartbeats answered p99, 10 members leave", "ms", None),
        ("join.cpu", "broker CPU, 100 members join", "s", None),
        ("leave.cpu", "broker CPU, 10 members leave", "s", None),
        ("rest.cpu", "broker CPU at rest, 90 members", "% of a core", None),
    ):
        yield Figure(
            name=f"groups.{name}", title=title, unit=unit, more_is_better=False, target=target, section=section
        )


def _share() -> Iterable[Figure]:
    section = "Share groups, 1 KB, 16 partitions, Kafka's Java client"
    for kind in ("classic", "diskless"):
        for members, acknowledgement in SHARE_CASES:
            name = f"share.{kind}.{acknowledgement}.{members}"
            title = f"{members} member{'s' * (members > 1)}, {acknowledgement} acknowledgement, {kind} topic"
            yield Figure(name=f"{name}.mb", title=title, unit="MB/s", section=section)
            yield Figure(name=f"{name}.records", title=f"the same in records, {title}", unit="/s", section=section)
            yield Figure(
                name=f"{name}.cpu", title=f"broker CPU, {title}", unit="s/GB", more_is_better=False, section=section
            )
