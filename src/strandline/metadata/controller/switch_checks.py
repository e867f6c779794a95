"""What is asked about logs and stores before a topic may become diskless; the answers are judged by plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from strandline.config import TopicConfig
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.metadata.image import TopicImage
from strandline.metadata.plans.diskless_switch import CheckedTopic, check_empty, must_be_empty


class SwitchChecks(Protocol):
    """What the metadata does not know of a topic that is to become diskless. Asked on the controller's broker."""

    async def non_empty_partitions(self, topic: TopicImage) -> Sequence[int]:
        """The partitions that hold records. Raises a StrandlineError that names a broker that cannot be asked."""

    def tiered_problem(self) -> str | None:
        """Why segments cannot be copied to remote storage at the moment, in a sentence; None if they can."""

    def diskless_problem(self, topic: str) -> StrandlineError | None:
        """Why the topic cannot be kept in object storage; None if it can, as far as is known."""


class NoSwitchChecks:
    """`SwitchChecks` of a controller that runs without the partitions of a broker: nothing can become diskless."""

    async def non_empty_partitions(self, topic: TopicImage) -> Sequence[int]:
        raise KafkaStorageError(f"The logs of {topic.name} cannot be asked here.")

    def tiered_problem(self) -> str | None:
        return "Remote storage is not known here."

    def diskless_problem(self, topic: str) -> StrandlineError | None:
        return KafkaStorageError(f"Whether {topic} can be kept in object storage is not known here.")


async def check_contents(topic: TopicImage, after: TopicConfig, checks: SwitchChecks) -> CheckedTopic:
    """Ask about logs and stores. Raises InvalidConfig, KafkaStorageError, or why it cannot be known."""
    refusal = checks.diskless_problem(topic.name)
    if refusal is not None:
        raise refusal
    problem = checks.tiered_problem() if after.remote_storage_enable else None
    if must_be_empty(after, problem):
        check_empty(topic, await checks.non_empty_partitions(topic), problem)
    return CheckedTopic(topic.topic_id, after.remote_storage_enable)
