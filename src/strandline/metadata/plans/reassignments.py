"""Reassignments of partitions to other brokers, as far as this version allows them.

Replicas do not move yet. So a partition is never being reassigned, there is nothing to cancel, and an assignment to the
brokers that have the partition already changes nothing and succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.admin_errors import NoReassignmentInProgress
from strandline.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.metadata.image import MetadataImage
from strandline.metadata.requests import Plan
from strandline.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """The brokers that a partition is to be on. None: cancel the reassignment that is under way."""

    partition: TopicPartition
    replicas: tuple[int, ...] | None


def plan_reassignments(
    image: MetadataImage, wishes: Sequence[Reassignment], *, may_change_factor: bool
) -> Plan[list[StrandlineError | None]]:
    """One answer for each wish; None: the partition is where it is to be. There are never records to write."""
    return Plan((), [_refusal(image, wish, may_change_factor=may_change_factor) for wish in wishes])


def _refusal(image: MetadataImage, wish: Reassignment, *, may_change_factor: bool) -> StrandlineError | None:
    name, number = wish.partition
    partition = image.partition(name, number)
    if partition is None:
        what = f"topic {name}" if name not in image.topics else f"partition {number} of topic {name}"
        return UnknownTopicOrPartition(f"There is no {what}.")
    if wish.replicas is None:
        return NoReassignmentInProgress(f"{wish.partition} is not being reassigned.")
    illegal = _illegal(image, wish.replicas)
    if illegal is not None:
        return InvalidReplicaAssignment(f"{wish.partition} cannot be assigned to {list(wish.replicas)}: {illegal}.")
    if wish.replicas == partition.replicas:
        return None
    if len(wish.replicas) != len(partition.replicas) and not may_change_factor:
        return InvalidReplicationFactor(
            f"{wish.partition} has {len(partition.replicas)} replicas, and the request forbids another number."
        )
    return InvalidReplicaAssignment(
        f"{wish.partition} is on brokers {list(partition.replicas)} and stays there: "
        "partitions cannot move to other brokers in this version."
    )


def _illegal(image: MetadataImage, replicas: tuple[int, ...]) -> str | None:
    if not replicas:
        return "the list is empty"
    if len(set(replicas)) != len(replicas):
        return "a broker is named twice"
    unknown = [node_id for node_id in replicas if node_id not in image.brokers]
    return f"no broker is registered with the id {unknown[0]}" if unknown else None
