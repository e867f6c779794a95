"""What several handlers share: where they read the cluster's metadata, and how they speak of errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from itertools import islice
from typing import Final, Protocol, TypeAlias, TypeVar

from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.metadata.image import TopicImage
from strandline.model import INTERNAL_TOPICS
from strandline.wire.errors import ErrorCode, error_code_of

# Kafka's numbers of operations, as bits: what everybody may do as long as there is no authorizer.
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = (1 << bit for bit in range(3, 9))
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (1 << bit for bit in range(9, 13))
TOPIC_OPERATIONS: Final = _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
CLUSTER_OPERATIONS: Final = (
    _CREATE | _ALTER | _DESCRIBE | _CLUSTER_ACTION | _DESCRIBE_CONFIGS | _ALTER_CONFIGS | _IDEMPOTENT_WRITE
)
GROUP_OPERATIONS: Final = _READ | _DELETE | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
OPERATIONS_NOT_ASKED: Final = -(1 << 31)
_ASKED_AT_ONCE: Final = 64

A = TypeVar("A")

CurrentSettings: TypeAlias = Callable[[], Settings]


def is_internal(topic: str) -> bool:
    """Whether a topic belongs to the brokers and not to users."""
    return topic in INTERNAL_TOPICS


class ServedTopics(Protocol):
    """Who knows which brokers serve the topics that the metadata speaks of."""

    async def wait_served(self, topics: Collection[str]) -> None:
        """Wait until a new topic, or new partitions of one, can be written to; not for ever."""

    def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
        """The topic as clients should see it that can reach these brokers."""


async def each(answers: Iterable[Coroutine[None, None, A]]) -> list[A]:
    """The answers to many questions of one request, a bounded number of which are asked at the same time."""
    found: list[A] = []
    waiting = iter(answers)
    while some := list(islice(waiting, _ASKED_AT_ONCE)):
        found += await asyncio.gather(*some) if len(some) > 1 else [await some[0]]
    return found


def outcome(result: object) -> tuple[ErrorCode, str | None]:
    """Error code and message of one item: an error, or anything else for success."""
    if isinstance(result, StrandlineError):
        return error_code_of(result), str(result)
    return ErrorCode.NONE, None
