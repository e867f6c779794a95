"""A broker whose topics are all classic: there is nothing to wait for, and each is served by its leader."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from strandline.errors import StrandlineError
from strandline.metadata import TopicImage


class AllServed:
    """`ServedTopics` without diskless topics."""

    async def wait_served(self, topics: Collection[str]) -> None:
        return None

    def why_not_creatable(self, topic: str, configs: Mapping[str, str | None]) -> StrandlineError | None:
        return None

    def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
        return topic
