"""Reassignments, while partitions cannot move."""

from __future__ import annotations

import pytest

from strandline.admin_errors import NoReassignmentInProgress
from strandline.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.metadata import Reassignment
from strandline.model import TopicPartition
from tests.metadata.cluster import open_cluster


@pytest.mark.parametrize(
    ("partition", "replicas", "answer"),
    [
        (("t", 0), (1,), None),
        (("t", 0), (2,), InvalidReplicaAssignment),
        (("t", 0), (1, 2), InvalidReplicaAssignment),
        (("t", 0), (1, 1), InvalidReplicaAssignment),
        (("t", 0), (), InvalidReplicaAssignment),
        (("t", 0), (9,), InvalidReplicaAssignment),
        (("t", 0), None, NoReassignmentInProgress),
        (("t", 1), (1,), UnknownTopicOrPartition),
        (("missing", 0), None, UnknownTopicOrPartition),
    ],
)
async def test_answers(
    partition: tuple[str, int], replicas: tuple[int, ...] | None, answer: type[StrandlineError] | None
) -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [(1,)])
        before = cluster.image
        (given,) = await cluster.controller.reassign(
            [Reassignment(partition=TopicPartition(*partition), replicas=replicas)]
        )
        assert (None if given is None else type(given)) is answer
        assert cluster.image is before


async def test_another_number_of_replicas_can_be_forbidden() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [(1,)])
        wish = Reassignment(partition=TopicPartition("t", 0), replicas=(1, 2))
        (given,) = await cluster.controller.reassign([wish], may_change_factor=False)
        assert isinstance(given, InvalidReplicationFactor)
