"""Waits until both brokers have come to rest in the same state, as far as ListOffsets tells it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from differential.exchange import Pair
from differential.places import Ends, Place
from differential.steps import Step
from strandline.wire.api import ApiKey
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_QUESTIONS: Final = ((-1, 0), (-1, 1), (-2, 0), (-4, 0), (-5, 0), (-6, 0))  # timestamp, isolation: as in `Ends`
_VERSION: Final = 11
_STEP_SECONDS: Final = 0.03
_LONGEST_SECONDS: Final = 60.0

Snapshot = Mapping[Place, Ends]


class StatesDiffer(Exception):
    """Both brokers have come to rest, or never do, and are not in the same state."""

    def __init__(self, old: Snapshot, new: Snapshot) -> None:
        differing = [place for place in old if old[place] != new.get(place)]
        super().__init__(", ".join(map(str, differing)))
        self.old = {place: old[place] for place in differing}
        self.new = {place: new[place] for place in differing}


def settle(pair: Pair, places: Sequence[Place], *, quiet_seconds: float) -> Snapshot:
    """The state of these partitions, once both brokers have the same, and have had it for so long.

    Raises StatesDiffer if that does not come.
    """
    deadline = time.monotonic() + _LONGEST_SECONDS
    since, before = time.monotonic(), ({}, {})  # type: tuple[float, tuple[Snapshot, Snapshot]]
    while True:
        now = _snapshots(pair, places)
        if now != before:
            since, before = time.monotonic(), now
        old, new = now
        if old == new and time.monotonic() - since >= quiet_seconds:
            return new
        if time.monotonic() > deadline:
            raise StatesDiffer(old, new)
        time.sleep(_STEP_SECONDS)


def _snapshots(pair: Pair, places: Sequence[Place]) -> tuple[Snapshot, Snapshot]:
    found: tuple[dict[Place, list[Any]], dict[Place, list[Any]]] = ({}, {})
    for timestamp, isolation in _QUESTIONS:
        answers = pair.ask(_question(places, timestamp, isolation))
        for answer, ends in zip((answers.old, answers.new), found, strict=True):
            for topic in answer.message.topics if answer.message else ():
                for one in topic.partitions:
                    told = (one.error_code, one.offset, one.leader_epoch)
                    ends.setdefault(Place(topic.name, one.partition_index), []).append(told)
    old, new = ({place: Ends(*told) for place, told in ends.items()} for ends in found)
    return old, new


def _question(places: Sequence[Place], timestamp: int, isolation: int) -> Step:
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[ListOffsetsPartition(partition_index=one.partition, timestamp=timestamp) for one in found],
        )
        for name, found in groupby(sorted(places), key=lambda place: place.topic)
    ]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=30_000)
    return Step(api=ApiKey.LIST_OFFSETS, version=_VERSION, message=request, wire="ends")
