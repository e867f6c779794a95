"""Committed offsets: storing, reading, deleting, expiring, and what happens to them when topics go."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import pytest_asyncio

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import (
    CommitRequest,
    CommittedOffset,
    GroupState,
    LeavingMember,
    MemberProtocol,
    PartitionCommit,
)
from strandline.coordinators.groups.schemas import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    read_key,
    read_offset_value,
    write_offset_key,
    write_offset_value,
)
from strandline.coordinators.runtime import ReadBatch, ReadRecord
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    InvalidRequest,
    KafkaStorageError,
    NonEmptyGroup,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    RequestTimedOut,
    StrandlineError,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from strandline.model import TopicPartition
from tests.coordinators.groups.members import GroupDriver, subscription
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

RETENTION_S = 7 * 24 * 3600
SWEEP_S = 600


async def stored(group: GroupDriver, require_stable: bool = False) -> dict[tuple[str, int], int]:
    answers = await group.coordinator.fetch("g", None, require_stable=require_stable)
    return {(answer.topic, answer.partition): answer.offset for answer in answers}


async def test_a_client_without_membership_commits_to_a_simple_group(group: GroupDriver) -> None:
    assert await group.commit(("orders", 0, 5), ("orders", 1, 6)) == [None, None]
    assert await stored(group) == {("orders", 0): 5, ("orders", 1): 6}
    (listed,) = await group.coordinator.list_groups()
    assert (listed.group_id, listed.protocol_type, listed.state) == ("g", "", GroupState.EMPTY)


async def test_offsets_are_answered_in_the_order_asked(group: GroupDriver) -> None:
    await group.commit(("b", 1, 5))
    asked = [TopicPartition("b", 1), TopicPartition("a", 0)]
    assert await group.coordinator.fetch("g", asked) == [
        CommittedOffset(topic="b", partition=1, offset=5),
        CommittedOffset(topic="a", partition=0),
    ]


async def test_an_unknown_group_has_no_offsets_and_no_error(group: GroupDriver) -> None:
    assert await group.coordinator.fetch("g", [TopicPartition("a", 0)]) == [CommittedOffset(topic="a", partition=0)]
    assert await group.coordinator.fetch("g", None) == []


async def test_an_offset_is_visible_when_it_is_committed(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.commit(("orders", 0, 1))
    log.hold()
    task = asyncio.create_task(group.commit(("orders", 0, 2)))
    await group.clock.settle()
    assert await stored(group) == {("orders", 0): 1}
    stable = asyncio.create_task(stored(group, require_stable=True))
    await group.clock.settle()
    assert not stable.done()
    log.release()
    await task
    assert await stable == {("orders", 0): 2}


async def test_a_commit_that_the_log_refuses_changes_nothing(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.commit(("orders", 0, 1))
    log.fail_with = RequestTimedOut("too slow")
    with pytest.raises(CoordinatorNotAvailable):
        await group.commit(("orders", 0, 2))
    log.fail_with = None
    assert await stored(group, require_stable=True) == {("orders", 0): 1}


async def test_a_commit_to_a_log_that_takes_it_at_once_waits_for_nothing(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    request = CommitRequest(group_id="g", offsets=(PartitionCommit(topic="orders", partition=0, offset=7),))
    committing = group.coordinator.commit(request)
    with pytest.raises(StopIteration) as ended:
        committing.send(None)
    assert ended.value.value == [None]
    assert [len(records) for _, records in log.appends] == [1]
    assert await stored(group, require_stable=True) == {("orders", 0): 7}


async def test_a_commit_behind_one_that_is_under_way_is_the_later_one(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    log.hold()
    first = asyncio.create_task(group.commit(("orders", 0, 1)))
    await group.clock.settle()
    second = asyncio.create_task(group.commit(("orders", 0, 2)))
    await group.clock.settle()
    assert await group.coordinator.fetch("g", None) == []
    log.release()
    assert (await first, await second) == ([None], [None])
    assert await group.commit(("orders", 0, 3)) == [None]
    assert await stored(group) == {("orders", 0): 3}
    assert [read_offset_value(record.value or b"").offset for _, records in log.appends for record in records] == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (NotLeaderOrFollower, NotCoordinator),
        (FencedLeaderEpoch, NotCoordinator),
        (KafkaStorageError, NotCoordinator),
        (UnknownTopicOrPartition, CoordinatorNotAvailable),
    ],
)
async def test_a_commit_that_cannot_be_taken_at_once_gets_the_error_of_the_append(
    group: GroupDriver, log: MemoryCoordinatorLog, refusal: type[StrandlineError], told: type[StrandlineError]
) -> None:
    log.fail_with = log.now_fails_with = refusal("It cannot be.")
    with pytest.raises(told):
        await group.commit(("orders", 0, 1))
    log.fail_with = log.now_fails_with = None
    assert await stored(group) == {}


async def test_commits_that_arrive_together_are_one_append_if_that_takes_time(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    log.commits_at_once = False
    await asyncio.gather(*(group.commit(("orders", n, n)) for n in range(50)))
    assert [len(records) for _, records in log.appends] == [50]


async def test_an_append_is_never_larger_than_a_batch_may_be(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    log.max_bytes, log.commits_at_once = 1000, False
    await asyncio.gather(*(group.commit(("orders", n, n)) for n in range(50)))
    assert len(await stored(group)) == 50
    for _, records in log.appends:
        assert sum(len(record.key) + len(record.value or b"") for record in records) < 1000


async def test_the_generation_has_to_be_right(group: GroupDriver) -> None:
    with pytest.raises(IllegalGeneration):
        await group.commit(("orders", 0, 1), member_id="x", generation_id=1)
    with pytest.raises(GroupIdNotFound):
        await group.commit(("orders", 0, 1), member_id="x", generation_id=1, reports_unknown_group=True)
    (member,) = await group.stable({})
    mine = member.member_id
    with pytest.raises(UnknownMemberId):
        await group.commit(("orders", 0, 1))
    with pytest.raises(UnknownMemberId):
        await group.commit(("orders", 0, 1), member_id="x", generation_id=1)
    with pytest.raises(IllegalGeneration):
        await group.commit(("orders", 0, 1), member_id=mine, generation_id=2)
    with pytest.raises(IllegalGeneration):
        await group.commit(("orders", 0, 1), member_id=mine, generation_id=-1)
    assert await group.commit(("orders", 0, 1), member_id=mine, generation_id=1) == [None]


async def test_a_member_may_commit_before_it_rejoins_but_not_before_it_is_assigned(group: GroupDriver) -> None:
    leader, follower = await group.stable({}, {})
    rejoined = await group.start_join(member_id=leader.member_id)
    await group.commit(("orders", 0, 3), member_id=follower.member_id, generation_id=1)
    await group.join(member_id=follower.member_id)
    assert rejoined.done()
    with pytest.raises(RebalanceInProgress):
        await group.commit(("orders", 0, 4), member_id=follower.member_id, generation_id=2)


async def test_metadata_has_a_limit_of_characters(group: GroupDriver) -> None:
    commits = tuple(
        PartitionCommit(topic="orders", partition=at, offset=1, metadata=metadata)
        for at, metadata in enumerate(["x" * 4096, "x" * 4097, "é" * 4096, "\N{GRINNING FACE}" * 2049])
    )
    results = await group.coordinator.commit(CommitRequest(group_id="g", offsets=commits))
    kinds = [None if result is None else type(result) for result in results]
    assert kinds == [None, OffsetMetadataTooLarge, None, OffsetMetadataTooLarge]


async def test_a_commit_without_a_legal_offset_writes_nothing(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    commit = PartitionCommit(topic="orders", partition=0, offset=1, metadata="x" * 5000)
    (result,) = await group.coordinator.commit(CommitRequest(group_id="g", offsets=(commit,)))
    assert isinstance(result, OffsetMetadataTooLarge)
    assert log.appends == []
    assert await group.coordinator.list_groups() == []


async def test_a_client_may_choose_its_retention(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.commit(("orders", 0, 1), retention_time_ms=5000)
    value = read_offset_value(log.appends[-1][1][0].value or b"")
    assert value.expire_timestamp == group.clock.now_ms() + 5000
    await group.clock.advance(SWEEP_S)
    assert await group.coordinator.list_groups() == []


# Deleting


async def test_offsets_of_an_empty_group_can_be_deleted(group: GroupDriver) -> None:
    await group.commit(("orders", 0, 1), ("orders", 1, 2))
    asked = [TopicPartition("orders", 0), TopicPartition("orders", 9)]
    assert await group.coordinator.delete_offsets("g", asked) == [None, None]
    assert await stored(group) == {("orders", 1): 2}


async def test_offsets_of_subscribed_topics_are_kept(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    await group.commit(("orders", 0, 1), ("old", 0, 2), member_id=member.member_id, generation_id=1)
    asked = [TopicPartition("orders", 0), TopicPartition("old", 0)]
    subscribed, deleted = await group.coordinator.delete_offsets("g", asked)
    assert isinstance(subscribed, GroupSubscribedToTopic)
    assert deleted is None
    assert await stored(group) == {("orders", 0): 1}


async def test_offsets_of_other_protocols_are_kept_while_there_are_members(group: GroupDriver) -> None:
    await group.stable({"protocol_type": "connect"})
    with pytest.raises(NonEmptyGroup):
        await group.coordinator.delete_offsets("g", [TopicPartition("orders", 0)])
    with pytest.raises(GroupIdNotFound):
        await group.coordinator.delete_offsets("nobody", [])
    with pytest.raises(InvalidGroupId):
        await group.coordinator.delete_offsets("", [])


async def test_a_group_with_members_cannot_be_deleted(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    results = await group.coordinator.delete_groups(["g", "nobody", ""])
    assert [type(result) for result in results] == [NonEmptyGroup, GroupIdNotFound, GroupIdNotFound]
    group.coordinator.leave("g", [LeavingMember(member_id=member.member_id)])
    await group.clock.settle()
    assert await group.coordinator.delete_groups(["g"]) == [None]
    assert await group.coordinator.list_groups() == []
    assert group.state() is GroupState.DEAD


async def test_deleting_a_group_deletes_commits_that_are_on_their_way(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    await group.commit(("orders", 0, 1))
    log.hold()
    late = asyncio.create_task(group.commit(("orders", 1, 1)))
    await group.clock.settle()
    deleted = asyncio.create_task(group.coordinator.delete_groups(["g"]))
    await group.clock.settle()
    log.release()
    assert await late == [None]
    assert await deleted == [None]
    assert await group.coordinator.list_groups() == []
    assert await stored(group) == {}
    tombstones = [read_key(record.key) for record in log.appends[-1][1] if record.value is None]
    assert tombstones == [OffsetKey("g", "orders", 0), OffsetKey("g", "orders", 1), GroupKey("g")]


async def test_a_group_comes_back_if_its_deletion_fails(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.commit(("orders", 0, 1))
    log.fail_with = RequestTimedOut("too slow")
    (result,) = await group.coordinator.delete_groups(["g"])
    assert isinstance(result, CoordinatorNotAvailable)
    assert await stored(group) == {("orders", 0): 1}


async def test_members_may_join_while_the_old_group_is_being_deleted(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    await group.commit(("orders", 0, 1))
    log.hold()
    deleted = asyncio.create_task(group.coordinator.delete_groups(["g"]))
    await group.clock.settle()
    member_id = await group.new_id()
    log.release()
    assert await deleted == [None]
    assert (await group.join(member_id=member_id)).error is None
    assert await stored(group) == {}


# Expiring


async def test_offsets_of_a_simple_group_expire_after_the_last_commit(group: GroupDriver) -> None:
    await group.commit(("orders", 0, 1))
    await group.clock.advance(RETENTION_S / 2)
    await group.commit(("orders", 1, 1))
    await group.clock.advance(RETENTION_S / 2 + SWEEP_S)
    assert await stored(group) == {("orders", 1): 1}
    await group.clock.advance(RETENTION_S / 2 + SWEEP_S)
    assert await group.coordinator.list_groups() == []


async def test_an_offset_that_is_being_committed_again_does_not_expire(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    await group.commit(("orders", 0, 1))
    await group.clock.advance(RETENTION_S - 1)
    log.hold()
    again = asyncio.create_task(group.commit(("orders", 0, 2)))
    await group.clock.advance(1 + SWEEP_S)
    log.release()
    with pytest.raises(CoordinatorNotAvailable):
        await again  # it has taken too long; the offset counts nevertheless
    await group.clock.settle()
    assert await stored(group) == {("orders", 0): 2}


async def test_offsets_of_an_empty_group_expire_together(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    (member,) = await group.stable({"session_timeout_ms": 1_800_000})
    await group.commit(("orders", 0, 1), member_id=member.member_id, generation_id=1)
    group.coordinator.leave("g", [LeavingMember(member_id=member.member_id)])
    await group.clock.advance(RETENTION_S - SWEEP_S)
    assert await stored(group) == {("orders", 0): 1}
    await group.clock.advance(2 * SWEEP_S)
    assert await group.coordinator.list_groups() == []
    assert [record.value for record in log.appends[-1][1]] == [None, None]


async def test_offsets_of_topics_a_live_group_left_behind_expire(group: GroupDriver) -> None:
    long = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}
    (member,) = await group.stable(
        {**long, "protocols": (MemberProtocol(name="range", metadata=subscription("orders")),)}
    )
    await group.commit(("orders", 0, 1), ("old", 0, 1), member_id=member.member_id, generation_id=1)
    for _ in range(RETENTION_S // 1200 + 2):
        await group.clock.advance(1200)
        group.coordinator.heartbeat("g", member.member_id, 1)
    assert await stored(group) == {("orders", 0): 1}


async def test_a_live_group_of_another_protocol_keeps_everything(group: GroupDriver) -> None:
    (member,) = await group.stable({"protocol_type": "connect", "session_timeout_ms": 1_800_000})
    await group.commit(("old", 0, 1), member_id=member.member_id, generation_id=1)
    for _ in range(RETENTION_S // 1200 + 2):
        await group.clock.advance(1200)
        group.coordinator.heartbeat("g", member.member_id, 1)
    assert await stored(group) == {("old", 0): 1}


async def test_an_empty_group_without_offsets_goes_with_the_next_sweep(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    group.coordinator.leave("g", [LeavingMember(member_id=member.member_id)])
    await group.clock.advance(SWEEP_S)
    assert await group.coordinator.list_groups() == []


async def test_a_failed_sweep_is_tried_again(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.commit(("orders", 0, 1))
    log.fail_with = RequestTimedOut("too slow")
    await group.clock.advance(RETENTION_S + SWEEP_S)
    assert await stored(group) == {("orders", 0): 1}
    log.fail_with = None
    await group.clock.advance(SWEEP_S)
    assert await stored(group) == {}


# Transactions, as later work will write them


def transactional(offset: int, committed: int) -> ReadBatch:
    value = OffsetValue(offset=committed, commit_timestamp=1)
    key = write_offset_key(OffsetKey("g", "orders", 0))
    return ReadBatch(
        records=(ReadRecord(offset, key, write_offset_value(value)),), producer_id=7, is_transactional=True
    )


def ordinary(offset: int, committed: int) -> ReadBatch:
    return transactional(offset, committed)._replace(producer_id=-1, is_transactional=False)


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([transactional(0, 5), ReadBatch(producer_id=7, committed=True)], 5),
        ([transactional(0, 5), ReadBatch(producer_id=7, committed=False)], -1),
        ([transactional(0, 5), ReadBatch(producer_id=8, committed=True)], -1),
        ([transactional(0, 5)], -1),
        ([transactional(0, 5), ordinary(1, 9), ReadBatch(producer_id=7, committed=True)], 9),
        ([ordinary(0, 9), transactional(1, 5), ReadBatch(producer_id=7, committed=True)], 5),
    ],
)
async def test_transactions_in_the_log_are_understood(
    group: GroupDriver, log: MemoryCoordinatorLog, batches: list[ReadBatch], expected: int
) -> None:
    group.coordinator.runtime.resigned(0)
    log.batches[0] = batches
    group.coordinator.runtime.elected(0, 1)
    await group.coordinator.runtime.wait_loaded()
    (answer,) = await group.coordinator.fetch("g", [TopicPartition("orders", 0)])
    assert answer.offset == expected


async def test_an_open_transaction_makes_offsets_unstable(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    group.coordinator.runtime.resigned(0)
    log.batches[0] = [ordinary(0, 3), transactional(1, 5)]
    group.coordinator.runtime.elected(0, 1)
    await group.coordinator.runtime.wait_loaded()
    asked = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    unstable, stable = await group.coordinator.fetch("g", asked, require_stable=True)
    assert isinstance(unstable.error, UnstableOffsetCommit)
    assert stable.error is None
    assert (await group.coordinator.fetch("g", asked))[0].offset == 3
    await group.clock.advance(RETENTION_S + SWEEP_S)
    assert await stored(group) == {("orders", 0): 3}


class TestShortRetention:
    @pytest.fixture
    def settings(self) -> GroupSettings:
        return replace(
            GroupSettings(),
            group_initial_rebalance_delay_ms=0,
            offsets_retention_minutes=1,
            offsets_retention_check_interval_ms=1000,
        )

    async def test_the_settings_count(self, group: GroupDriver) -> None:
        await group.commit(("orders", 0, 1))
        await group.clock.advance(59)
        assert await stored(group) == {("orders", 0): 1}
        await group.clock.advance(2)
        assert await stored(group) == {}


async def test_nonsense_in_a_commit_is_refused_or_bounded(group: GroupDriver) -> None:
    with pytest.raises(InvalidRequest):
        await group.commit(("orders", 0, 1), group_id="x" * 40_000)
    assert await group.commit(("orders", 0, 1), retention_time_ms=2**63 - 1) == [None]
    assert await group.commit(("orders", 1, 1), retention_time_ms=-(2**63)) == [None]
    await group.clock.advance(SWEEP_S)
    assert await stored(group) == {("orders", 0): 1}


async def test_a_commit_whose_client_has_gone_is_stored_all_the_same(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    log.hold()
    task = asyncio.create_task(group.commit(("orders", 0, 1)))
    await group.clock.settle()
    task.cancel()
    await group.clock.settle()
    log.release()
    await group.clock.settle()
    assert await stored(group) == {("orders", 0): 1}


class TestManyShards:
    @pytest.fixture
    def settings(self) -> GroupSettings:
        return replace(GroupSettings(), offsets_retention_minutes=1, offsets_retention_check_interval_ms=20_000)

    @pytest_asyncio.fixture
    async def log(self) -> MemoryCoordinatorLog:
        return MemoryCoordinatorLog(8)

    async def test_every_shard_is_swept(self, group: GroupDriver) -> None:
        for number in range(40):
            await group.commit(("orders", 0, 1), group_id=f"g-{number}")
        await group.clock.advance(80)
        assert await group.coordinator.list_groups() == []
