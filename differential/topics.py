"""The topics of each kind, and how they come into the state in which the comparison begins.

A stage has three acts, with a SIGKILL of both brokers after each of the first two, so that logs have several leader
epochs. What a topic does in an act is a list of deeds, in `differential.deeds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from differential.deeds import (
    Deed,
    convert,
    delete_below,
    end_transactions,
    settle,
    switch,
    write,
    write_transactions,
)
from differential.places import Place

_SEGMENTS: Final = {"internal.segment.bytes": "21000", "index.interval.bytes": "1000"}
_FOREVER: Final = {"retention.ms": "-1"}
_TIERED: Final = {"remote.storage.enable": "true", **_SEGMENTS, **_FOREVER}
_SMALL: Final = {**_TIERED, "local.retention.bytes": "1"}
_DISKLESS: Final = {"diskless.enable": "true", **_FOREVER}
_APPEND_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
QUIET_KINDS: Final = frozenset({"classic", "diskless"})
"""Kinds in which nothing happens behind a request, unless a topic has a limit on its size."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic under comparison."""

    name: str
    configs: Mapping[str, str]
    acts: tuple[Sequence[Deed], Sequence[Deed], Sequence[Deed]]
    partitions: int = 1
    loses: Literal["", "log", "tail"] = ""
    """What is removed from the disk after the second act: its log, or all segments of it but the first."""
    is_copied_in_part: bool = False
    """Its third act comes last, and from then on nothing more is copied until the next restart."""

    @property
    def kind(self) -> str:
        return self.name.partition("-")[0]

    @property
    def places(self) -> list[Place]:
        return [Place(self.name, number) for number in range(self.partitions)]

    @property
    def is_quiet(self) -> bool:
        """Whether its state changes only by requests."""
        return self.kind in QUIET_KINDS and not self.is_limited

    @property
    def is_limited(self) -> bool:
        """Whether retention deletes what is too much."""
        return "retention.bytes" in self.configs

    @property
    def is_stamped(self) -> bool:
        """Whether the broker's clock gives its records their times."""
        return self.configs.get("message.timestamp.type") == "LogAppendTime"


TOPICS: Final = (
    Topic("classic-plain", {**_SEGMENTS, **_FOREVER}, ([write(30)], [write(10)], [write(5)]), partitions=2),
    Topic("classic-append-time", {**_SEGMENTS, **_APPEND_TIME}, ([write(8)], [write(5)], [write(3)])),
    Topic("classic-recompressed", {"compression.type": "zstd", **_SEGMENTS, **_FOREVER}, ([write(8)], [], [write(3)])),
    Topic("classic-limited", {"retention.bytes": "60000", **_SEGMENTS, **_FOREVER}, ([write(30)], [write(20)], [])),
    Topic("classic-transactions", {**_SEGMENTS, **_FOREVER}, ([write_transactions(9)], [write_transactions(6)], [])),
    Topic("classic-empty", {}, ([], [], [])),
    Topic("tiered-remote", _SMALL, ([write(30)], [write(30), settle], [write(10), settle]), partitions=2),
    Topic("tiered-both", _TIERED, ([write(30)], [write(20), settle], [write(5), settle])),
    Topic(
        "tiered-transactions",
        _SMALL,
        ([write_transactions(15)], [write_transactions(15), write(10), settle], [write_transactions(3), settle]),
    ),
    Topic("tiered-limited", {**_SMALL, "retention.bytes": "90000"}, ([write(30)], [write(30), settle], [settle])),
    Topic("tiered-deleted", _SMALL, ([write(30)], [write(10), settle, delete_below("middle")], [write(5), settle])),
    Topic(
        "switched-remote",
        _SMALL,
        ([write(30)], [write(20), write_transactions(6), end_transactions, settle, switch("HYBRID")], [write(20)]),
    ),
    Topic("switched-local", _TIERED, ([write(30)], [switch("HYBRID"), write(10)], [write(10)]), partitions=2),
    Topic(
        "switched-transactions",
        _SMALL,
        (
            [write_transactions(15), end_transactions],
            [switch("HYBRID"), write_transactions(6)],
            [write_transactions(6)],
        ),
    ),
    Topic(
        "switched-gone",
        _SMALL,
        (
            [write(20)],
            [write(10), switch("HYBRID"), write(10), delete_below("boundary"), settle],
            [write(10)],
        ),
    ),
    Topic("switched-lost", _SMALL, ([write(20)], [write(20), switch("HYBRID"), write(5)], [write(5)]), loses="log"),
    Topic("switched-torn", _TIERED, ([write(20)], [write(20), switch("HYBRID"), write(5)], [write(5)]), loses="tail"),
    Topic("switched-empty", _SMALL, ([], [switch("")], [write(10)])),
    Topic("switched-partly", _TIERED, ([], [write(10)], [write(40), settle, switch("")]), is_copied_in_part=True),
    Topic("switched-later", _SMALL, ([write(20)], [write(20), settle], [write(10), settle])),
    Topic("converted-whole", _DISKLESS, ([write(30)], [convert, write(20)], [convert]), partitions=2),
    Topic("converted-part", _DISKLESS, ([write(20), convert], [write(20), convert, write(5)], [write(10)])),
    Topic(
        "converted-transactions",
        _DISKLESS,
        ([write_transactions(12)], [write_transactions(6), end_transactions, convert], [write_transactions(6)]),
    ),
    Topic(
        "converted-deleted",
        _DISKLESS,
        ([write(20), convert, write(20)], [convert, write(20), delete_below("middle")], [write(5)]),
    ),
    Topic(
        "converted-switched",
        _SMALL,
        ([write(20)], [write(10), settle, switch("HYBRID"), write(20), convert], [write(10)]),
    ),
    Topic("converted-later", _DISKLESS, ([write(20)], [write(10)], [write(10)])),
    Topic("diskless-plain", _DISKLESS, ([write(30)], [write(10)], [write(5)]), partitions=2),
    Topic("diskless-append-time", {**_DISKLESS, **_APPEND_TIME}, ([write(8)], [write(5)], [write(3)])),
    Topic("diskless-transactions", _DISKLESS, ([write_transactions(9)], [write_transactions(6)], [])),
    Topic("diskless-limited", {**_DISKLESS, "retention.bytes": "30000"}, ([write(30)], [write(20), settle], [settle])),
    Topic("diskless-deleted", _DISKLESS, ([write(20)], [delete_below("middle")], [write(5)])),
    Topic("diskless-empty", _DISKLESS, ([], [], [])),
)
KINDS: Final = tuple(dict.fromkeys(topic.kind for topic in TOPICS))
