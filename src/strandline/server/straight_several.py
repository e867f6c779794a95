"""The straight path of requests with several partitions, as Kafka's Java producer sends them.

Which partitions such a request has, and in which order, changes from one to the next: only what lies before its topics
is the same bytes each time. So there is a route for each partition, found by the bytes of its topic and its number. The
whole request is read, and all routes are found, before the first batch is appended. Each batch is then decided by
itself: the request goes on the general way with the first one that has to, and keeps the answers that it has. Where
other replicas have to have the records, `straight_several_replicated` appends them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from strandline.errors import StrandlineError
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.traffic import TopicTraffic
from strandline.model import INTERNAL_TOPICS, NO_OFFSET, NO_TIMESTAMP
from strandline.replication import Partition
from strandline.wire.produce_codec import ProduceAnswer
from strandline.wire.produce_places import TopicPlaces, find_places, read_topic, write_successes

Served: TypeAlias = tuple[bytes | None, list[ProduceAnswer], int]
"""The answer, if the request is done. Else the answers of its first partitions, if they are. How many are done."""
NOT_THIS_WAY: Final[Served] = (None, [], 0)
IN_ITS_PLACE: Final[Served] = (None, [], -1)
"""Nothing has happened: the answer has to wait for other replicas, and needs a place among those of the connection."""
PartitionPlace: TypeAlias = tuple[TopicTraffic, Partition, int, int]
"""Where a batch goes, and where it begins and ends in the request."""


class TopicRoutes:
    """Where batches for one topic go."""

    __slots__ = ("replicas", "traffic")

    def __init__(self, traffic: TopicTraffic) -> None:
        self.traffic = traffic
        self.replicas: dict[int, Partition] = {}


class PartitionRoutes:
    """The routes to all partitions that requests with several have named."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._topics: dict[int, dict[bytes, TopicRoutes]] = {}
        """By version, and by the topic as it lies in requests of that version."""
        partitions.when_changed(self._topics.clear)

    def serve(self, view: memoryview, position: int, end: int, version: int, correlation_id: int) -> Served:
        """Append the records of the request whose topics begin at `position`.

        Without an answer it has to go on the general way; if none of its partitions is done, nothing has happened.
        """
        topics, routes = self.find(view, position, end, version)
        if not routes:
            return NOT_THIS_WAY
        offsets: list[tuple[int, int]] = []
        for traffic, replica, start, stop in routes:
            role = replica.role
            first_offset = role.append_now(view[start:stop]) if role.answers_at_once else NO_OFFSET
            if first_offset == NO_OFFSET:
                if not offsets and not role.answers_at_once and replica.is_leader:
                    return IN_ITS_PLACE
                done = [ProduceAnswer(0, first, NO_TIMESTAMP, log_start) for first, log_start in offsets]
                return None, done, len(done)
            of_log = replica.log.offsets
            offsets.append((first_offset, of_log.start))
            traffic.produce_requests += 1
            traffic.messages_in += of_log.end - first_offset
            traffic.bytes_in += stop - start
        return write_successes(correlation_id, version, topics, offsets), [], len(offsets)

    def find(
        self, view: memoryview, position: int, end: int, version: int
    ) -> tuple[list[TopicPlaces], list[PartitionPlace]]:
        """What lies in the request whose topics begin at `position`, and where it goes; nothing if it is not known."""
        topics = find_places(view, position, end, version)
        return topics, self._find(topics, version)

    def _find(self, topics: list[TopicPlaces], version: int) -> list[PartitionPlace]:
        """The route of every place; nothing if one has none."""
        known = self._topics.setdefault(version, {})
        found: list[PartitionPlace] = []
        for topic, places in topics:
            routes = known.get(topic)
            for index, start, stop in places:
                replica = None if routes is None else routes.replicas.get(index)
                if routes is None or replica is None:
                    routes = self._learn(topic, index, version)
                    if routes is None:
                        return []
                    replica = routes.replicas[index]
                found.append((routes.traffic, replica, start, stop))
        return found

    def _learn(self, raw: bytes, index: int, version: int) -> TopicRoutes | None:
        """The routes to a topic, of which this partition is a new one; None if batches for it cannot go straight."""
        topic = read_topic(raw, version)
        if topic is None:
            return None
        try:
            name = topic if isinstance(topic, str) else self._partitions.topic_name(topic)
            replica = self._partitions.find(name, index).appends.local_replica
        except StrandlineError:
            return None  # the general path tells the client
        if replica is None or name in INTERNAL_TOPICS:  # which of the clients may write there is not asked here
            return None
        known = self._topics.setdefault(version, {})
        routes = known.get(raw)
        if routes is None:
            routes = known[raw] = TopicRoutes(self._partitions.traffic[topic])
        routes.replicas[index] = replica
        return routes
