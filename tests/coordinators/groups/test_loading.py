"""Loading groups from the log: after a restart, after elections, and from what Kafka wrote."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemIds
from strandline.config.groups import GroupSettings
from strandline.coordinators.fields import CoordinatorFieldReader
from strandline.coordinators.groups import DescribedMember, GroupCoordinator, GroupState, JoinResponse, LeavingMember
from strandline.coordinators.groups.subscription import subscribed_topics
from strandline.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptMessage,
    NotCoordinator,
    UnknownMemberId,
)
from strandline.model import TopicPartition, uuid_from_text
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.groups.members import SESSION_MS, GroupDriver, answer_of, join_request
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog
from tests.coordinators.runtime.replicas import LEADER_EPOCH, open_coordinator_log
from tests.golden import copy_of, read_json


async def reload(group: GroupDriver) -> None:
    """What a restart does to memory."""
    group.coordinator.runtime.resigned(0)
    group.coordinator.runtime.elected(0, 1)
    await group.coordinator.runtime.wait_loaded()


async def test_a_stable_group_goes_on_after_a_restart(group: GroupDriver) -> None:
    leader, follower = await group.stable({}, {"group_instance_id": "i-1"})
    await group.commit(("orders", 0, 7), member_id=leader.member_id, generation_id=1)
    before = group.coordinator.describe_group("g")
    await reload(group)
    assert group.coordinator.describe_group("g") == before
    group.coordinator.heartbeat("g", leader.member_id, 1)
    group.coordinator.heartbeat("g", follower.member_id, 1, "i-1")
    assert (await group.sync(leader.member_id, 1)).assignment == f"a-{leader.member_id}".encode()
    (offset,) = await group.coordinator.fetch("g", [TopicPartition("orders", 0)])
    assert offset.offset == 7
    rejoined = await group.start_join(member_id=leader.member_id)
    assert group.state() is GroupState.PREPARING_REBALANCE
    await group.join(member_id=follower.member_id, group_instance_id="i-1")
    assert answer_of(rejoined).generation_id == 2


async def test_members_that_do_not_come_back_after_a_restart_are_removed(group: GroupDriver) -> None:
    await group.stable({})
    await reload(group)
    await group.clock.advance(SESSION_MS / 1000)
    assert group.state() is GroupState.EMPTY


async def test_the_generation_goes_on_in_an_empty_group(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    group.coordinator.leave("g", [LeavingMember(member_id=member.member_id)])
    await group.clock.settle()
    await reload(group)
    assert group.state() is GroupState.EMPTY
    assert (await group.join(requires_member_id=False)).generation_id == 3


async def test_deleted_groups_and_offsets_stay_deleted(group: GroupDriver) -> None:
    await group.commit(("orders", 0, 1))
    await group.coordinator.delete_groups(["g"])
    await group.commit(("orders", 1, 1))
    await reload(group)
    answers = await group.coordinator.fetch("g", None)
    assert [(answer.topic, answer.partition) for answer in answers] == [("orders", 1)]


async def test_requests_wait_outside_while_the_log_is_read(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    (member,) = await group.stable({})
    group.coordinator.runtime.resigned(0)
    log.hold()
    group.coordinator.runtime.elected(0, 1)
    await group.clock.settle()
    assert isinstance((await group.join()).error, CoordinatorLoadInProgress)
    assert isinstance((await group.sync(member.member_id, 1)).error, CoordinatorLoadInProgress)
    group.coordinator.heartbeat("g", member.member_id, 1)  # taken as good
    for refused in (
        lambda: group.coordinator.leave("g", [LeavingMember(member_id=member.member_id)]),
        lambda: group.coordinator.describe_group("g"),
    ):
        with pytest.raises(CoordinatorLoadInProgress):
            refused()
    with pytest.raises(CoordinatorLoadInProgress):
        await group.coordinator.list_groups()
    with pytest.raises(CoordinatorLoadInProgress):
        await group.commit(("orders", 0, 1))
    with pytest.raises(CoordinatorLoadInProgress):
        await group.coordinator.fetch("g", None)
    (deleted,) = await group.coordinator.delete_groups(["g"])
    assert isinstance(deleted, CoordinatorLoadInProgress)
    log.release()
    await group.coordinator.runtime.wait_loaded()
    group.coordinator.heartbeat("g", member.member_id, 1)


async def test_waiting_requests_get_not_coordinator_when_leadership_is_lost(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    leader, follower = await group.stable({}, {})
    joining = await group.start_join(member_id=leader.member_id)
    log.hold()
    committing = asyncio.create_task(group.commit(("a", 0, 1), member_id=follower.member_id, generation_id=1))
    await group.clock.settle()
    group.coordinator.runtime.resigned(0)
    await group.clock.settle()
    assert isinstance(answer_of(joining).error, NotCoordinator)
    with pytest.raises(NotCoordinator):
        await committing
    assert isinstance((await group.join()).error, NotCoordinator)
    with pytest.raises(NotCoordinator):
        group.coordinator.heartbeat("g", leader.member_id, 1)
    log.release()


async def test_a_waiting_sync_gets_not_coordinator_when_leadership_is_lost(group: GroupDriver) -> None:
    joined = [answer_of(task) for task in await group.join_together(*[{"requires_member_id": False}] * 2)]
    follower = next(response for response in joined if not response.members)
    waiting = await group.start_sync(follower.member_id, 1)
    group.coordinator.runtime.resigned(0)
    await group.clock.settle()
    assert isinstance(answer_of(waiting).error, NotCoordinator)


async def test_leadership_can_be_lost_while_the_log_is_read(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.commit(("orders", 0, 1))
    group.coordinator.runtime.resigned(0)
    log.hold()
    group.coordinator.runtime.elected(0, 1)
    await group.clock.settle()
    group.coordinator.runtime.resigned(0)
    log.release()
    await group.clock.settle()
    assert isinstance((await group.join()).error, NotCoordinator)
    assert len(group.coordinator.runtime.timers) == 0


async def test_a_second_election_changes_nothing(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    group.coordinator.runtime.elected(0, 9)
    group.coordinator.heartbeat("g", member.member_id, 1)


async def test_a_log_that_cannot_be_read_is_tried_again_with_the_next_election(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    await group.commit(("orders", 0, 1))
    group.coordinator.runtime.resigned(0)
    log.fail_with = CorruptMessage("a bad disk")
    group.coordinator.runtime.elected(0, 1)
    await group.coordinator.runtime.wait_loaded()
    assert isinstance((await group.join()).error, NotCoordinator)
    log.fail_with = None
    group.coordinator.runtime.elected(0, 2)
    await group.coordinator.runtime.wait_loaded()
    assert len(await group.coordinator.fetch("g", None)) == 1


async def test_a_coordinator_that_stopped_refuses(clock: VirtualClock, settings: GroupSettings) -> None:
    log = MemoryCoordinatorLog()
    coordinator = GroupCoordinator(log, KnownTopics(), clock=clock, ids=SystemIds(), settings=settings)
    async with coordinator.running():
        coordinator.runtime.elected(0, 0)
        await coordinator.runtime.wait_loaded()
        waiting = asyncio.create_task(coordinator.join(join_request(requires_member_id=False)))
        member = await waiting
        follower = asyncio.create_task(coordinator.join(join_request(requires_member_id=False)))
        await clock.settle()
        assert member.error is None
    assert isinstance((await follower).error, NotCoordinator)
    assert isinstance((await coordinator.join(join_request())).error, CoordinatorNotAvailable)


async def test_a_client_that_goes_away_while_it_waits_is_forgotten_by_its_session(group: GroupDriver) -> None:
    leader, _ = await group.stable({}, {})
    waiting = await group.start_join(member_id=leader.member_id)
    waiting.cancel()
    await group.clock.advance(100)
    assert group.state() is GroupState.EMPTY


# Kafka's own log


async def load_golden(kafka_classic: Path, tmp_path: Path, clock: VirtualClock, found: list[Any]) -> None:
    """Load all three partitions through real log files, and leave the answers in `found`."""
    directory = tmp_path / "logs"
    directory.mkdir()
    for partition in range(3):
        copy_of(
            kafka_classic / f"classic/__consumer_offsets-{partition}", directory / f"__consumer_offsets-{partition}"
        )
    topic_id = read_topic_id(directory / "__consumer_offsets-0" / "partition.metadata")
    with open_coordinator_log(directory, partitions=3, topic_id=topic_id) as (log, _):
        topics = kafkas_topics(kafka_classic / "classic")
        coordinator = GroupCoordinator(log, topics, clock=clock, ids=SystemIds(), settings=GroupSettings())
        async with coordinator.running():
            for partition in range(3):
                coordinator.runtime.elected(partition, LEADER_EPOCH)
            await coordinator.runtime.wait_loaded()
            for listed in await coordinator.list_groups():
                offsets = await coordinator.fetch(listed.group_id, None)
                found.append((listed, coordinator.describe_group(listed.group_id), offsets))


def kafkas_topics(directory: Path) -> KnownTopics:
    """The topics whose partitions are in the log directory."""
    topics = KnownTopics()
    for path in sorted(directory.glob("*/partition.metadata")):
        topics.create(path.parent.name.rpartition("-")[0], read_topic_id(path))
    return topics


def read_topic_id(path: Path) -> uuid.UUID:
    line = next(line for line in path.read_text().splitlines() if line.startswith("topic_id: "))
    return uuid_from_text(line.removeprefix("topic_id: "))


async def test_kafkas_groups_are_loaded_as_kafka_describes_them(kafka_classic: Path, tmp_path: Path) -> None:
    expected = read_json(kafka_classic / "expected/classic/groups.json")
    found: list[Any] = []
    # The clock stands at the time of the run, so that no session has ended.
    await load_golden(kafka_classic, tmp_path, VirtualClock(1794771100000), found)
    groups = {listed.group_id: (listed, described, offsets) for listed, described, offsets in found}
    for group_id, group in expected.items():
        listed, described, offsets = groups.pop(group_id)
        if group["type"] == "Share":
            assert (listed.state.value, listed.protocol_type) == (group["state"], group["protocol"])
            continue
        stored = {
            f"{offset.topic}-{offset.partition}": {
                "offset": offset.offset,
                "metadata": offset.metadata,
                "leader_epoch": None if offset.leader_epoch == -1 else offset.leader_epoch,
            }
            for offset in offsets
        }
        assert stored == group["offsets"], group_id
        if group["type"] == "Classic":
            assert (listed.state.value, listed.protocol_type) == (group["state"], group["protocol"])
            assert described.protocol_name == group["assignor"]
            assert sorted(map(member_row, described.members)) == sorted(
                (m["member_id"], m["instance_id"], m["client_id"], m["host"], m["assignment"]) for m in group["members"]
            )
    assert groups == {}


def member_row(member: DescribedMember) -> tuple[str, str | None, str, str, list[str]]:
    """A member as the expected file has it."""
    reader = CoordinatorFieldReader(member.assignment)
    reader.i16()
    assigned = []
    for _ in range(reader.array_length(compact=False)):
        topic = reader.string()
        assigned += [f"{topic}-{reader.i32()}" for _ in range(reader.array_length(compact=False))]
    return member.member_id, member.group_instance_id, member.client_id, member.client_host, sorted(assigned)


def test_subscriptions_that_cannot_be_read_are_unknown() -> None:
    assert subscribed_topics([b"\0\0\0\0"]) is None
    assert subscribed_topics([]) == frozenset()


async def test_an_unknown_member_after_a_restart_is_told_so(group: GroupDriver) -> None:
    joined: JoinResponse = await group.join(requires_member_id=False)
    await reload(group)  # the member had joined, but no assignment was stored
    assert isinstance((await group.join(member_id=joined.member_id)).error, UnknownMemberId)


async def test_the_status_counts_groups_offsets_and_timers(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.stable({}, {})
    await group.commit(("orders", 0, 1), group_id="simple")
    status = group.coordinator.status()
    assert (status.shards, status.loading, status.failed, status.offsets) == (1, 0, 0, 1)
    assert status.groups == {GroupState.STABLE: 1, GroupState.EMPTY: 1}
    assert status.timers == 3  # two sessions and the sweep
    group.coordinator.runtime.resigned(0)
    assert group.coordinator.status().timers == 0
