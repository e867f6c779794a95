"""A broker whose topics are all classic: there is nothing to wait for."""

from __future__ import annotations

from collections.abc import Collection


class AllServed:
    """`ServedTopics` without diskless topics."""

    async def wait_served(self, topics: Collection[str]) -> None:
        return None
