"""Offsets in transactions: what was admitted before a marker is written before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from strandline.coordinators.groups import CommitRequest, GroupCoordinator, PartitionCommit
from strandline.coordinators.runtime import TransactionEnd, WriteResult
from strandline.coordinators.transactions.admissions import (
    Admission,
    AdmissionResults,
    Participant,
    TransactionAdmissions,
)
from strandline.model import GROUP_METADATA_TOPIC, ProducerAndEpoch, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.conftest import clock, coordinator, log, settings, topics
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

__all__ = ["clock", "coordinator", "log", "settings", "topics"]

PRODUCER = ProducerAndEpoch(7, 0)
WHO = Participant("t", PRODUCER, adds=False)


class SuddenCoordinators:
    """Admits, and at the next turn of the loop something else happens."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    async def admit(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        asyncio.get_running_loop().call_soon(self._then)
        return dict.fromkeys(partitions, Admission())


async def test_a_marker_that_comes_right_after_the_leave_ends_the_offsets(
    coordinator: GroupCoordinator, log: MemoryCoordinatorLog, clock: VirtualClock
) -> None:
    """Otherwise they would begin a transaction that nobody ends, and never be stable."""
    partition = coordinator.partition_for("g")
    place = TopicPartition(GROUP_METADATA_TOPIC, partition)
    markers: list[WriteResult] = []

    def write_marker() -> None:
        admissions.marker_comes(place, PRODUCER.producer_id)
        end = TransactionEnd(PRODUCER, True, 0, 0)
        coordinator.runtime.shard_of(partition).end_transaction(end, markers.append)

    admissions = TransactionAdmissions(SuddenCoordinators(write_marker))
    request = CommitRequest(
        group_id="g",
        member_id="",
        generation_id=-1,
        producer=PRODUCER,
        offsets=(PartitionCommit(topic="orders", partition=0, offset=5),),
    )
    await coordinator.commit_when(
        lambda allowed: admissions.admit(WHO, place, lambda answer: allowed(answer.error)), request
    )
    (found,) = await coordinator.fetch("g", [TopicPartition("orders", 0)], require_stable=True)
    assert [one.error for one in markers] == [None]
    assert (found.offset, found.error) == (5, None)
