"""A consumer group (KIP-848) whose members are bare sockets: they follow the protocol, and fetch nothing.

A hundred clients of any library would cost more CPU than the broker they measure. These members send what Kafka's
client sends: heartbeats at the interval that the broker gives, and one at once when there is an assignment to
acknowledge.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID, uuid4

from bench.generator import LoadFailed
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from strandline.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.registry import decode_response, encode_request

_VERSION: Final = 1
_JOINING: Final = 0
_LEAVING: Final = -1
_REBALANCE_TIMEOUT_MS: Final = 300_000
_PATIENCE_SECONDS: Final = 90.0
_GROUPS: Final = 0  # the type of key that FindCoordinator is asked for
_LOADED: Final = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
_LENGTH: Final = struct.Struct(">i")

Owned = frozenset[tuple[UUID, int]]
"""Partitions by the id of their topic."""


class BareMember:
    """One member with a connection of its own."""

    def __init__(
        self, bootstrap: str, group_id: str, topics: Sequence[str], changed: asyncio.Event, answers: list[float]
    ) -> None:
        self._bootstrap, self._group_id, self._topics = bootstrap, group_id, topics
        self._changed, self._answers = changed, answers
        self._member_id = str(uuid4())
        self._correlation_id = 0
        self._is_leaving = asyncio.Event()
        self.epoch = _JOINING
        self.beats = 0
        self.owned: Owned = frozenset()
        self._acknowledged: Owned | None = None

    @property
    def has_acknowledged(self) -> bool:
        """Whether the broker knows that this member has what it was given."""
        return self._acknowledged == self.owned

    def leave(self) -> None:
        self._is_leaving.set()

    async def run(self) -> None:
        """Join, and heartbeat until told to leave. Raises LoadFailed: nothing here may be fenced or refused."""
        host, _, port = self._bootstrap.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        loop = asyncio.get_running_loop()
        try:
            while not self._is_leaving.is_set():
                sent_at = loop.time()
                interval = await self._beat(reader, writer)
                self._answers.append(loop.time() - sent_at)
                if self.has_acknowledged:
                    await _wait_set(self._is_leaving, sent_at + interval - loop.time())
            await self._ask(reader, writer, self._request(_LEAVING))
        finally:
            writer.close()

    async def _beat(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        """One heartbeat, and the seconds until the next one."""
        owned = self.owned
        answer = await self._ask(reader, writer, self._request(self.epoch))
        self.epoch, self._acknowledged = answer.member_epoch, owned
        self.beats += 1
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            self.owned = frozenset((topic.topic_id, partition) for topic in topics for partition in topic.partitions)
        self._changed.set()
        return answer.heartbeat_interval_ms / 1000

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """What has changed since the last one: everything when joining, what is owned when it is not known yet."""
        is_joining = epoch == _JOINING
        says_owned = epoch != _LEAVING and not self.has_acknowledged
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS if is_joining else -1,
            subscribed_topic_names=list(self._topics) if is_joining else None,
            topic_partitions=_by_topic(self.owned) if says_owned else None,
        )

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        self._correlation_id += 1
        key = ApiKey.CONSUMER_GROUP_HEARTBEAT
        frame = encode_request(key, _VERSION, self._correlation_id, self._member_id, request)
        writer.write(_LENGTH.pack(len(frame)) + frame)
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        _, answer = decode_response(key, _VERSION, memoryview(await reader.readexactly(length)))
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if answer.error_code:
            raise LoadFailed(f"A heartbeat was refused with {answer.error_code}: {answer.error_message}")
        return answer


class BareGroup:
    """The members of one group. `running` gives one."""

    def __init__(self, bootstrap: str, group_id: str, topics: Sequence[str], partitions: int) -> None:
        self._bootstrap, self._group_id, self._topics, self._partitions = bootstrap, group_id, topics, partitions
        self._changed = asyncio.Event()
        self._members: dict[BareMember, asyncio.Task[None]] = {}
        self._answers: list[float] = []

    @classmethod
    @asynccontextmanager
    async def running(
        cls, bootstrap: str, group_id: str, topics: Sequence[str], partitions: int
    ) -> AsyncIterator[BareGroup]:
        """A group without members whose coordinator is ready. Members that are left at the end leave."""
        await asyncio.to_thread(_wait_for_coordinator, bootstrap, group_id)
        group = cls(bootstrap, group_id, topics, partitions)
        try:
            yield group
            await group.leave(len(group._members))
        finally:
            for task in group._members.values():
                task.cancel()

    async def join(self, count: int) -> None:
        """Start so many members at once."""
        for _ in range(count):
            member = BareMember(self._bootstrap, self._group_id, self._topics, self._changed, self._answers)
            self._members[member] = asyncio.create_task(member.run())

    async def leave(self, count: int) -> None:
        """Returns when so many members have left: the oldest ones."""
        leaving = [(member, self._members.pop(member)) for member in [*self._members][:count]]
        for member, _ in leaving:
            member.leave()
        await asyncio.gather(*(task for _, task in leaving))

    async def wait_round(self) -> None:
        """Until each member has sent another heartbeat: what happens next is learned an interval later, by the last."""
        before = {member: member.beats for member in self._members}
        while any(member.beats == beats for member, beats in before.items()):
            await self._wait_changed(_PATIENCE_SECONDS)

    async def wait_stable(self) -> float:
        """When each partition had one owner and each member the newest epoch, by the loop's clock. Raises LoadFailed.

        The members know it first; that the group is stable, with every member at the target, is for the broker to say.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_SECONDS
        while True:
            if self._is_complete():
                stable_at = loop.time()
                if await asyncio.to_thread(_is_stable, self._bootstrap, self._group_id, len(self._members)):
                    return stable_at
            self._changed.clear()
            if not await _wait_set(self._changed, deadline - loop.time()):
                raise LoadFailed(
                    f"Group {self._group_id} was not stable after {_PATIENCE_SECONDS:g} s: {self._state()}"
                )
            for task in self._members.values():
                if task.done():
                    task.result()  # a member that was refused

    async def _wait_changed(self, seconds: float) -> None:
        self._changed.clear()
        if not await _wait_set(self._changed, seconds):
            raise LoadFailed(f"{self._group_id} was not stable after {_PATIENCE_SECONDS:g} s: {self._state()}")
        for task in self._members.values():
            if task.done():
                task.result()  # a member that was refused

    def owned(self) -> list[Owned]:
        """What each member has."""
        return [member.owned for member in self._members]

    def answer_seconds(self, share: float) -> float:
        """A quantile of the times in which heartbeats were answered since the last call."""
        seconds = sorted(self._answers)
        self._answers.clear()
        return seconds[min(int(len(seconds) * share), len(seconds) - 1)]

    def _is_complete(self) -> bool:
        members, owned = self._members.keys(), self.owned()
        return (
            len({member.epoch for member in members}) == 1
            and all(member.has_acknowledged for member in members)
            and sum(map(len, owned)) == self._partitions
            and len(Owned().union(*owned)) == self._partitions
        )

    def _state(self) -> str:
        owned = sum(map(len, self.owned()))
        epochs = {member.epoch for member in self._members}
        return f"{len(self._members)} members own {owned} partitions and have epochs {min(epochs)} to {max(epochs)}."


def _by_topic(owned: Iterable[tuple[UUID, int]]) -> list[TopicPartitions]:
    topics: dict[UUID, TopicPartitions] = {}
    for topic_id, partition in sorted(owned):
        topics.setdefault(topic_id, TopicPartitions(topic_id=topic_id)).partitions.append(partition)
    return [*topics.values()]


async def _wait_set(event: asyncio.Event, seconds: float) -> bool:
    """Whether it was set in time."""
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _wait_for_coordinator(bootstrap: str, group_id: str) -> None:
    """The first question makes the broker create its topic for groups, which takes a while to be loaded."""
    find = FindCoordinatorRequest(key_type=_GROUPS, coordinator_keys=[group_id])
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with _connected(bootstrap) as client:
        while time.monotonic() < deadline:
            found = client.request(ApiKey.FIND_COORDINATOR, find)
            assert isinstance(found, FindCoordinatorResponse)
            if found.coordinators[0].error_code == 0 and _described(client, group_id).error_code in _LOADED:
                return
            time.sleep(0.1)
    raise LoadFailed(f"Group {group_id} has no coordinator.")


def _is_stable(bootstrap: str, group_id: str, members: int) -> bool:
    """What the broker says: all members are at the newest epoch and have what the target assignment gives them."""
    with _connected(bootstrap) as client:
        group = _described(client, group_id)
    return (
        group.group_state == "Stable"
        and len(group.members) == members
        and group.assignment_epoch == group.group_epoch
        and all(
            member.member_epoch == group.group_epoch and _places(member.assignment) == _places(member.target_assignment)
            for member in group.members
        )
    )


def _places(assignment: Assignment) -> Owned:
    return frozenset((topic.topic_id, one) for topic in assignment.topic_partitions for one in topic.partitions)


def _described(client: Client, group_id: str) -> DescribedGroup:
    answer = client.request(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=[group_id]))
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    return answer.groups[0]


def _connected(bootstrap: str) -> Client:
    host, _, port = bootstrap.rpartition(":")
    return Client.connect(host, int(port))
