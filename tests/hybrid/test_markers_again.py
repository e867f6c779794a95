"""A marker that did not get its answer is sent again, and finds itself in the log."""

from __future__ import annotations

import pytest

from strandline.clock import SystemClock
from strandline.coordinators.runtime import TransactionEnd
from strandline.errors import InvalidProducerEpoch, NotLeaderOrFollower, RequestTimedOut
from strandline.hybrid.parts.replica_appends import ReplicaAppends
from strandline.model import ProducerAndEpoch
from strandline.replication import Partition
from tests.replication.conftest import NODE, Fixture, image
from tests.replication.conftest import fixture as fixture

BOTH = (NODE, 2)
SOON_MS = 10
CLOCK = SystemClock()


def held_back(fixture: Fixture) -> Partition:
    """A leader whose only follower has nothing yet."""
    partition = fixture.partition()
    partition.follow(image(replicas=BOTH, isr=BOTH))
    return partition


async def mark(partition: Partition, *, version: int, epoch: int) -> None:
    end = TransactionEnd(ProducerAndEpoch(7, epoch), is_commit=True, coordinator_epoch=0, transaction_version=version)
    await ReplicaAppends(partition).append_and_wait(
        end.batch(CLOCK.now_ms()), timeout_ms=SOON_MS, transaction_version=version
    )


async def test_a_marker_is_not_there_before_other_replicas_have_it(fixture: Fixture) -> None:
    """Its coordinator takes the refusal for success. If the next leader lacked it, the transaction would never end."""
    partition = held_back(fixture)
    for _ in range(3):
        with pytest.raises(RequestTimedOut):
            await mark(partition, version=2, epoch=1)
    assert partition.log.log_end_offset == 1, "it was appended once"
    partition.follow(image(replicas=BOTH, isr=(NODE,), version=1))  # the follower is out of sync
    with pytest.raises(InvalidProducerEpoch):
        await mark(partition, version=2, epoch=1)
    assert partition.log.log_end_offset == 1


async def test_a_marker_of_an_older_client_is_appended_again(fixture: Fixture) -> None:
    partition = held_back(fixture)
    for end in (1, 2):
        with pytest.raises(RequestTimedOut):
            await mark(partition, version=0, epoch=0)
        assert partition.log.log_end_offset == end
    partition.follow(image(replicas=BOTH, isr=(NODE,), version=1))
    await mark(partition, version=0, epoch=0)


async def test_a_marker_is_not_there_if_another_broker_leads_meanwhile(fixture: Fixture) -> None:
    partition = held_back(fixture)
    with pytest.raises(RequestTimedOut):
        await mark(partition, version=2, epoch=1)
    partition.follow(image(leader=2, epoch=1, replicas=BOTH, isr=BOTH, version=1))
    with pytest.raises(NotLeaderOrFollower):
        await mark(partition, version=2, epoch=1)


async def test_a_marker_of_a_transaction_that_is_over_is_refused_at_once(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image())
    await mark(partition, version=2, epoch=2)
    for epoch in (1, 2):
        with pytest.raises(InvalidProducerEpoch):
            await mark(partition, version=2, epoch=epoch)
