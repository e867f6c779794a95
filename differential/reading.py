"""Random requests that read: Fetch without a session, ListOffsets, OffsetForLeaderEpoch, DescribeProducers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from differential.aiming import Aim
from differential.places import Place
from differential.scene import Scene
from differential.steps import Step
from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_SPREAD = 9


class Reading:
    """Sends one such request at each call."""

    def __init__(self, scene: Scene, aim: Aim) -> None:
        self._scene, self._aim, self._dice = scene, aim, scene.dice

    def fetch(self) -> None:
        """Any partitions, sizes, waits and readers."""
        places = self._aim.places(self._dice.choice((1, 1, 1, 3, _SPREAD)))
        request = self.fetch_request([(place, self.fetch_entry(place)) for place in places])
        self._scene.ask(self._step(ApiKey.FETCH, request, places, self._version(ApiKey.FETCH)))

    def fetch_entry(self, place: Place) -> FetchPartition:
        aim, dice = self._aim, self._dice
        return FetchPartition(
            partition=place.partition,
            fetch_offset=aim.offset(place),
            current_leader_epoch=aim.current_epoch(place),
            last_fetched_epoch=-1 if dice.random() < 0.7 else aim.epoch(place),
            log_start_offset=dice.choice((-1, -1, 0, aim.known(place).start)),
            partition_max_bytes=aim.size(),
        )

    def fetch_request(self, entries: Iterable[tuple[Place, FetchPartition]]) -> FetchRequest:
        """Without a session. Topics whose partitions are not side by side are there twice."""
        dice = self._dice
        replica = -1 if dice.random() < 0.85 else dice.choice((-2, 0, 1, 2, 5))
        request = FetchRequest(
            replica_id=replica,
            replica_state=ReplicaState(replica_id=replica, replica_epoch=dice.choice((-1, -1, 0, 1))),
            max_wait_ms=dice.choice((*(0,) * 20, 10, 20, 60, 60, 900)),
            min_bytes=dice.choice((0, 1, 1, 1, 500, 5000, 1 << 20)),
            max_bytes=self._aim.size() if dice.random() < 0.5 else 50 << 20,
            isolation_level=dice.choice((0, 1)),
        )
        for place, entry in entries:
            if not request.topics or request.topics[-1].topic != place.topic:
                request.topics.append(FetchTopic(topic=place.topic))
            request.topics[-1].partitions.append(entry)
        return request

    def list_offsets(self) -> None:
        places = self._aim.places(self._dice.choice((1, 1, 3, _SPREAD)))
        topics = _by_topic(
            places,
            lambda name: ListOffsetsTopic(name=name),
            lambda place: ListOffsetsPartition(
                partition_index=place.partition,
                current_leader_epoch=self._aim.current_epoch(place),
                timestamp=self._aim.time(place),
            ),
        )
        request = ListOffsetsRequest(
            replica_id=self._dice.choice((-1, -1, -1, -2, 1, 3)),
            isolation_level=self._dice.choice((0, 1)),
            topics=topics,
            timeout_ms=self._dice.choice((0, 30_000)),
        )
        version = self._version(ApiKey.LIST_OFFSETS, newest=0.7)  # older ones know fewer special timestamps
        self._scene.ask(self._step(ApiKey.LIST_OFFSETS, request, places, version))

    def epochs(self) -> None:
        places = self._aim.places(self._dice.choice((1, 3, _SPREAD)))
        topics = _by_topic(
            places,
            lambda name: OffsetForLeaderTopic(topic=name),
            lambda place: OffsetForLeaderPartition(
                partition=place.partition,
                current_leader_epoch=self._aim.current_epoch(place),
                leader_epoch=self._aim.epoch(place),
            ),
        )
        request = OffsetForLeaderEpochRequest(replica_id=self._dice.choice((-1, -1, -2, 1, 3)), topics=topics)
        version = self._version(ApiKey.OFFSET_FOR_LEADER_EPOCH)
        self._scene.ask(self._step(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, places, version))

    def producers(self) -> None:
        places = self._aim.places(4)
        topics = _by_topic(places, lambda name: TopicRequest(name=name), lambda place: place.partition)
        request = DescribeProducersRequest(topics=topics)
        self._scene.ask(self._step(ApiKey.DESCRIBE_PRODUCERS, request, places, 0))

    def _version(self, api: ApiKey, *, newest: float = 0.4) -> int:
        """Any, and the newest one with this probability at least."""
        versions = API_VERSIONS[api]
        return versions.max if self._dice.random() < newest else self._dice.randint(versions.min, versions.max)

    def _step(self, api: ApiKey, request: Any, places: list[Place], version: int) -> Step:
        wire = "read" if self._dice.random() < 0.9 else f"read-{self._dice.randrange(3)}"
        cut = self._dice.randint(1, 12) if self._dice.random() < 0.01 else 0
        return Step(api=api, version=version, message=request, places=tuple(places), wire=wire, cut=cut)


def _by_topic(places: list[Place], topic: Callable[[str], Any], entry: Callable[[Place], Any]) -> list[Any]:
    """Entries below their topics, each of which is there once."""
    found: dict[str, Any] = {}
    for place in places:
        if place.topic not in found:
            found[place.topic] = topic(place.topic)
        one = found[place.topic]
        (one.partition_indexes if isinstance(one, TopicRequest) else one.partitions).append(entry(place))
    return [*found.values()]
