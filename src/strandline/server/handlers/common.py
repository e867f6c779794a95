"""What several handlers share: authorized operations, errors as wire codes, topics that do not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from itertools import islice
from typing import Final, Protocol, TypeAlias, TypeVar

from strandline.config import Settings
from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.metadata import TopicImage, validate_topic_name
from strandline.model import INTERNAL_TOPICS
from strandline.wire.errors import ErrorCode, error_code_of, message_of

# Kafka's operations as bits: without an authorizer, every client may do all of them.
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
    """Knows which brokers serve the topics of the metadata. Implemented by `hybrid`."""

    async def wait_served(self, topics: Collection[str]) -> None:
        """Wait, for a limited time, until clients can write to new topics or new partitions."""

    def why_not_creatable(self, topic: str, configs: Mapping[str, str | None]) -> StrandlineError | None:
        """Why no client could use a new topic with these settings; None if nothing is known against it."""

    def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
        """The topic as it is shown to clients that can reach these brokers."""

    @property
    def view_version(self) -> int:
        """Changes whenever a topic may be shown otherwise although neither it nor a broker has changed."""


def unknown_topic(name: str) -> StrandlineError:
    """Why there is no topic of this name: the name is illegal, or no topic has it."""
    try:
        validate_topic_name(name)
    except StrandlineError as error:
        return error
    return UnknownTopicOrPartition(f"There is no topic {name}.")


async def each(answers: Iterable[Coroutine[None, None, A]]) -> list[A]:
    """The answers to the items of one request; a bounded number of items is worked on at the same time."""
    found: list[A] = []
    waiting = iter(answers)
    while some := list(islice(waiting, _ASKED_AT_ONCE)):
        found += await asyncio.gather(*some) if len(some) > 1 else [await some[0]]
    return found


def outcome(result: object) -> tuple[ErrorCode, str | None]:
    """Error code and message of one item: an error, or anything else for success."""
    if isinstance(result, StrandlineError):
        return error_code_of(result), message_of(result)
    return ErrorCode.NONE, None
