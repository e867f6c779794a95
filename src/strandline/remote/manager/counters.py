"""What was copied and deleted, topic by topic, for metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(slots=True)
class TopicCounters:
    """One topic since the start."""

    copy_requests: int = 0
    copy_errors: int = 0
    copy_bytes: int = 0
    """Of logs, without their indexes."""
    copied_segments: int = 0
    delete_requests: int = 0
    delete_errors: int = 0
    deleted_segments: int = 0
    deleted_bytes: int = 0


class Counters:
    """All topics. Those of deleted topics stay, as counters must not go back."""

    def __init__(self) -> None:
        self._topics: defaultdict[str, TopicCounters] = defaultdict(TopicCounters)

    def of(self, topic: str) -> TopicCounters:
        """The counters of a topic, to be raised."""
        return self._topics[topic]

    def frozen(self) -> Mapping[str, TopicCounters]:
        """A copy of them as they are now."""
        return {topic: replace(counters) for topic, counters in self._topics.items()}
