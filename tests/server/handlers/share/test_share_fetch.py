"""ShareFetch and ShareAcknowledge of a real broker, over its listener, on classic and on diskless topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.errors import StrandlineError
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from tests.server.handlers.share.sharing_world import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    VERSION,
    SharingWorld,
    sharing_broker,
)

TOPICS = {"classic": {}, "diskless": {"diskless_enable": "true"}}


@pytest_asyncio.fixture(params=list(TOPICS))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharingWorld]:
    async with sharing_broker(
        tmp_path, group_share_min_record_lock_duration_ms="1000", group_share_record_lock_duration_ms="1000"
    ) as opened:
        await opened.create_topic(**TOPICS[request.param])
        await opened.begin_group()
        yield opened


async def test_members_share_a_partition_and_settle_its_records(world: SharingWorld) -> None:
    await world.produce(3, 3, 4)
    one, other = await world.member("one"), await world.member("other")
    assert await one.fetch(max_records=4) == [(0, 5, 1)], "whole batches"
    assert await other.fetch() == [(6, 9, 1)]
    assert await one.fetch(max_wait_ms=50) == []
    await one.settle((0, 5, [ACCEPT]))
    await other.settle((6, 9, [ACCEPT, REJECT, ACCEPT, RELEASE]))
    assert await world.summary() == (6, 3)
    assert await one.fetch() == [(9, 9, 2)], "released, so it comes once more"
    await one.settle((9, 9, [ACCEPT]))
    assert await other.fetch(max_wait_ms=50) == []


async def test_acknowledgements_come_along_with_the_next_fetch(world: SharingWorld) -> None:
    await world.produce(2, 2)
    one = await world.member("one")
    assert await one.fetch(max_records=2) == [(0, 1, 1)]
    assert await one.fetch(said=[(0, 1, [ACCEPT])]) == [(2, 3, 1)]
    response = await one.ask(said=[(0, 9, [ACCEPT])])
    [partition] = response.responses[0].partitions
    assert (partition.error_code, partition.acknowledge_error_code) == (0, ErrorCode.INVALID_REQUEST)
    assert await one.fetch(epoch=-1, said=[(2, 2, [ACCEPT])]) == []
    other = await world.member("other")
    assert await other.fetch(max_wait_ms=5000) == [(3, 3, 2)], "given back"


async def test_a_fetch_waits_for_records(world: SharingWorld) -> None:
    one = await world.member("one")
    assert await one.fetch(max_wait_ms=50) == []
    waiting = asyncio.create_task(one.fetch(max_wait_ms=20_000))
    await world.produce(2)
    assert await waiting == [(0, 1, 1)]


async def test_a_fetch_waits_for_as_many_bytes_as_it_wants_but_not_for_ever(world: SharingWorld) -> None:
    await world.produce(2)
    one = await world.member("one")
    assert await one.fetch(max_wait_ms=50, min_bytes=100_000) == [(0, 1, 1)]


async def test_strict_limits_cut_batches(world: SharingWorld) -> None:
    await world.produce(10)
    one, other = await world.member("one"), await world.member("other")
    assert await one.fetch(max_records=3, share_acquire_mode=1) == [(0, 2, 1)]
    assert await other.fetch(max_records=3, share_acquire_mode=1) == [(3, 5, 1)]


async def test_acquired_records_are_cut_between_batches(world: SharingWorld) -> None:
    await world.produce(2, 2, 2, 2)
    one = await world.member("one")
    assert await one.fetch(batch_size=3) == [(0, 3, 1), (4, 7, 1)]


async def test_records_of_a_member_whose_connection_is_gone_go_to_others_at_once(world: SharingWorld) -> None:
    await world.produce(5)
    one, other = await world.member("one"), await world.member("other")
    assert await one.fetch() == [(0, 4, 1)]
    waiting = asyncio.create_task(other.fetch(max_wait_ms=20_000))
    one.client.drop()
    assert await waiting == [(0, 4, 2)]


async def test_a_member_that_begins_another_session_keeps_its_records(world: SharingWorld) -> None:
    """As in Kafka, which only replaces the session: the locks are the member's, and it settles them in the new one."""
    await world.produce(3)
    one = await world.member("one")
    assert await one.fetch() == [(0, 2, 1)]
    one.epoch = 0
    assert await one.fetch(max_wait_ms=0) == []
    await one.settle((0, 2, [ACCEPT]))
    assert len(world.broker.coordination.shares.partitions.sessions) == 1


async def test_locks_end_and_can_be_renewed(world: SharingWorld) -> None:
    """A lock of one second ends, and the member that waits gets the records; their holder cannot settle them then."""
    await world.produce(2)
    one, other = await world.member("one"), await world.member("other")
    assert await one.fetch() == [(0, 1, 1)]
    response = await one.acknowledge((0, 1, [RENEW]), is_renewal=True)
    assert (response.error_code, response.acquisition_lock_timeout_ms) == (0, 1000)
    assert await other.fetch(max_wait_ms=20_000) == [(0, 1, 2)]
    response = await one.acknowledge((0, 1, [ACCEPT]))
    assert response.responses[0].partitions[0].error_code == ErrorCode.INVALID_RECORD_STATE
    await other.settle((0, 1, [ACCEPT]))


async def test_settled_records_stay_settled_after_a_restart(tmp_path: Path) -> None:
    async with sharing_broker(tmp_path) as world:
        await world.create_topic()
        await world.begin_group()
        await world.produce(10)
        one = await world.member("one")
        assert await one.fetch() == [(0, 9, 1)]
        await one.settle((0, 3, [ACCEPT]), (6, 6, [RELEASE]), (8, 8, [REJECT]))
    async with sharing_broker(tmp_path) as world:
        other = await world.member("other")
        acquired = await other.fetch(max_wait_ms=20_000)
        counts = {offset: count for first, last, count in acquired for offset in range(first, last + 1)}
        assert [*counts] == [4, 5, 6, 7, 9]
        # 6 was released. Whether the others were, by a connection that ended with the broker, may not be stored.
        assert counts[6] == 2


async def test_deleted_records_are_skipped(world: SharingWorld) -> None:
    await world.produce(5, 5)
    one = await world.member("one")
    served = world.broker.partitions.find("topic", 0)
    await served.newest.delete_records(7)
    assert await one.fetch(max_wait_ms=20_000) == [(7, 9, 1)]


@pytest.mark.parametrize("is_fetch", [True, False], ids=["ShareFetch", "ShareAcknowledge"])
async def test_sessions_are_checked(world: SharingWorld, is_fetch: bool) -> None:
    await world.produce(1)
    one = await world.member("one")

    async def code(epoch: int) -> int:
        response = await (one.ask(epoch=epoch) if is_fetch else one.acknowledge(epoch=epoch))
        return int(response.error_code)

    assert await code(1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert await code(-1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert await one.fetch() == [(0, 0, 1)]
    assert await code(2) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    if not is_fetch:
        assert await code(0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert await code(1) == 0
    assert await code(1) == ErrorCode.INVALID_SHARE_SESSION_EPOCH, "it was used"
    assert await code(-1) == 0
    assert await code(2) == ErrorCode.SHARE_SESSION_NOT_FOUND
    one.name = ""
    assert await code(0) == ErrorCode.INVALID_REQUEST


async def test_a_broker_has_only_so_many_sessions(tmp_path: Path) -> None:
    async with sharing_broker(tmp_path, group_share_max_share_sessions="1") as world:
        await world.create_topic()
        await world.begin_group()
        one, other = await world.member("one"), await world.member("other")
        assert await one.fetch(max_wait_ms=50) == []
        response = await other.ask(max_wait_ms=10)
        assert response.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert (await one.acknowledge(epoch=-1)).error_code == 0
        assert await other.fetch(max_wait_ms=50) == []


@pytest.mark.parametrize(
    ("said", "is_renewal", "code"),
    [
        ((3, 2, [ACCEPT]), False, ErrorCode.INVALID_REQUEST),
        ((0, 2, [ACCEPT, ACCEPT]), False, ErrorCode.INVALID_REQUEST),
        ((0, 2, []), False, ErrorCode.INVALID_REQUEST),
        ((0, 2, [5]), False, ErrorCode.INVALID_REQUEST),
        ((0, 2, [RENEW]), False, ErrorCode.INVALID_REQUEST),
        ((0, 5, [ACCEPT]), False, ErrorCode.INVALID_REQUEST),
        ((3, 3, [ACCEPT]), False, ErrorCode.INVALID_RECORD_STATE),
    ],
)
async def test_wrong_acknowledgements_change_nothing(
    world: SharingWorld, said: tuple[int, int, list[int]], is_renewal: bool, code: ErrorCode
) -> None:
    await world.produce(3, 1)
    one, other = await world.member("one"), await world.member("other")
    assert await one.fetch(max_records=1) == [(0, 2, 1)]
    assert await other.fetch() == [(3, 3, 1)]
    response = await one.acknowledge(said, is_renewal=is_renewal)
    assert response.responses[0].partitions[0].error_code == code
    await one.settle((0, 2, [ACCEPT]))


async def test_unknown_topics_and_partitions(world: SharingWorld) -> None:
    one = await world.member("one")
    one.topic_id = world.broker.loader.image.topics["__share_group_state"].topic_id.__class__(int=99)
    response = await one.ask()
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    response = await one.acknowledge((0, 0, [ACCEPT]))
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_group_that_was_never_initialized_gets_an_error(world: SharingWorld) -> None:
    await world.broker.coordination.shares.states.delete(world.key)
    one = await world.member("one")
    response = await one.ask(max_wait_ms=5000)
    assert response.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


async def test_a_group_that_begins_anew_fences_what_is_under_way(world: SharingWorld) -> None:
    await world.produce(4)
    one = await world.member("one")
    assert await one.fetch() == [(0, 3, 1)]
    await world.begin_group(start_offset=2, state_epoch=2)
    response = await one.acknowledge((0, 3, [ACCEPT]))
    assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await one.fetch(max_wait_ms=20_000) == [(2, 3, 1)]


async def test_requests_that_renew_fetch_nothing(world: SharingWorld) -> None:
    await world.produce(1)
    one = await world.member("one")
    assert await one.fetch() == [(0, 0, 1)]
    response = await one.ask(is_renew_ack=True, epoch=1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "is_renew_ack": True}
    assert await one.fetch(said=[(0, 0, [RENEW])], **nothing) == []


async def test_the_older_version_knows_no_renewal(world: SharingWorld) -> None:
    await world.produce(1)
    one = await world.member("one")
    response = await one.client.call(ApiKey.SHARE_FETCH, 1, one.request(max_wait_ms=20_000))
    assert [len(one.acquired_records) for one in response.responses[0].partitions] == [1]
    assert VERSION == 2


async def test_share_partitions_without_members_are_forgotten(world: SharingWorld) -> None:
    await world.produce(1)
    one = await world.member("one")
    assert await one.fetch() == [(0, 0, 1)]
    shares = world.broker.coordination.shares.partitions
    assert (len(shares), len(shares.sessions)) == (1, 1)
    await one.acknowledge(epoch=-1)
    other = await world.member("other")
    assert await other.fetch(max_wait_ms=20_000) == [(0, 0, 2)]
    with pytest.raises(StrandlineError, match="not initialized"):
        await world.broker.coordination.shares.states.read(world.key._replace(group_id="x"), leader_epoch=0)
