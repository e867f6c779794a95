"""What clients write to and read from each topic through this broker, in totals that only grow.

Counted by the request handlers, for topics of every kind. A topic's numbers exist from its first request on and go with
the topic; the numbers of all topics together keep what deleted topics had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from operator import add, attrgetter
from typing import Final


@dataclass(frozen=True, slots=True)
class TrafficTotals:
    """Totals since the start of the broker."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_rejected: int = 0
    """Bytes of batches that were larger than the topic allows."""
    produce_requests: int = 0
    """Partitions of the topic in Produce requests, as in Kafka."""
    fetch_requests: int = 0
    """Partitions of the topic that were read for Fetch requests, as in Kafka."""
    produce_failures: int = 0
    fetch_failures: int = 0

    def plus(self, other: TrafficTotals) -> TrafficTotals:
        """The sum of two."""
        return TrafficTotals(*map(add, _values(self), _values(other)))


_values: Final = attrgetter(*(field.name for field in fields(TrafficTotals)))
"""The counters in their order. There may be thousands of topics: `getattr` for each takes many times as long."""
NO_TRAFFIC: Final = TrafficTotals()


class TopicTraffic:
    """The counters of one topic. The fields are those of `TrafficTotals`."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "fetch_failures",
        "fetch_requests",
        "messages_in",
        "produce_failures",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.produce_failures = 0
        self.fetch_failures = 0

    def totals(self) -> TrafficTotals:
        """The counters now."""
        return TrafficTotals(*_values(self))


class TrafficByTopic(dict[str | bytes, TopicTraffic]):
    """The counters of each topic, by its name and, for requests that name topics so, by the 16 bytes of its id.

    Subscript it for topics that exist, which creates the counters on first use; `get` for others.
    """

    def __init__(self, topic_name: Callable[[bytes], str]) -> None:
        """`topic_name` gives the name of the topic with an id. It raises UnknownTopicId."""
        super().__init__()
        self._topic_name = topic_name
        self._gone = NO_TRAFFIC

    def __missing__(self, topic: str | bytes) -> TopicTraffic:
        traffic = TopicTraffic() if isinstance(topic, str) else self[self._topic_name(topic)]
        self[topic] = traffic
        return traffic

    def forget(self, name: str, topic_id: bytes) -> None:
        """The topic was deleted."""
        self.pop(topic_id, None)
        traffic = self.pop(name, None)
        if traffic is not None:
            self._gone = self._gone.plus(traffic.totals())

    def of_topics(self) -> Mapping[str, TrafficTotals]:
        """The counters of each topic, by name."""
        return {name: traffic.totals() for name, traffic in self.items() if isinstance(name, str)}

    def of_all(self) -> TrafficTotals:
        """The counters of all topics together, deleted ones included."""
        counters = [_values(traffic) for name, traffic in self.items() if isinstance(name, str)]
        return TrafficTotals(*map(sum, zip(_values(self._gone), *counters, strict=True)))
