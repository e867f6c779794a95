"""The consumer protocol inside JoinGroup metadata: read only for the topics that a group uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.coordinators.fields import CoordinatorFieldReader
from strandline.errors import CorruptMessage

CONSUMER_PROTOCOL: Final = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics named by all subscriptions, or None if one of them cannot be read.

    Version 0 is the beginning of every later version, so only that part is read.
    """
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            reader = CoordinatorFieldReader(subscription)
            reader.i16()
            topics.update(reader.string() for _ in range(reader.array_length(compact=False)))
    except CorruptMessage:
        return None
    return frozenset(topics)
