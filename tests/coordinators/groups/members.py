"""Members of a classic group as tests drive them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from strandline.coordinators.groups import (
    CommitRequest,
    GroupCoordinator,
    GroupState,
    JoinRequest,
    JoinResponse,
    MemberProtocol,
    PartitionCommit,
    SyncRequest,
    SyncResponse,
)
from strandline.errors import MemberIdRequired, StrandlineError
from strandline.testing.clock import VirtualClock

T = TypeVar("T")

SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    """Consumer protocol metadata, version 0."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + (0).to_bytes(4, "big")


RANGE = MemberProtocol(name="range", metadata=subscription("orders"))


def join_request(**changes: object) -> JoinRequest:
    request = JoinRequest(
        group_id="g",
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        protocol_type="consumer",
        protocols=(RANGE,),
    )
    return replace(request, **changes)  # type: ignore[arg-type]


class GroupDriver:
    """Sends the requests of members of group "g" and lets the coordinator do what needs no time."""

    def __init__(self, coordinator: GroupCoordinator, clock: VirtualClock) -> None:
        self.coordinator, self.clock = coordinator, clock
        self._tasks: list[asyncio.Task[object]] = []

    async def start_join(self, **changes: object) -> asyncio.Task[JoinResponse]:
        """Send a JoinGroup that may have to wait."""
        task = asyncio.create_task(self.coordinator.join(join_request(**changes)))
        self._tasks.append(task)
        await self.clock.settle()
        return task

    async def join_together(self, *members: Mapping[str, object]) -> list[asyncio.Task[JoinResponse]]:
        """Send several JoinGroups in one turn of the loop."""
        tasks = [asyncio.create_task(self.coordinator.join(join_request(**changes))) for changes in members]
        self._tasks.extend(tasks)
        await self.clock.settle()
        return tasks

    async def new_id(self, **changes: object) -> str:
        """Ask for a member id, as clients that know KIP-394 do."""
        response = await self.join(**changes)
        assert isinstance(response.error, MemberIdRequired)
        return response.member_id

    async def join(self, **changes: object) -> JoinResponse:
        """A JoinGroup that is answered without time passing."""
        return answer_of(await self.start_join(**changes))

    async def start_sync(
        self, member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None, **changes: object
    ) -> asyncio.Task[SyncResponse]:
        request = SyncRequest(
            group_id="g", member_id=member_id, generation_id=generation_id, assignments=assignments or {}
        )
        task = asyncio.create_task(self.coordinator.sync(replace(request, **changes)))  # type: ignore[arg-type]
        self._tasks.append(task)
        await self.clock.settle()
        return task

    async def sync(
        self, member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None, **changes: object
    ) -> SyncResponse:
        return answer_of(await self.start_sync(member_id, generation_id, assignments, **changes))

    async def stable(self, *members: Mapping[str, object]) -> list[JoinResponse]:
        """A stable group with one member per argument (what its JoinGroup says). The first one leads."""
        ids = []
        for changes in members:
            is_static = changes.get("group_instance_id") is not None
            ids.append("" if is_static else await self.new_id(**changes))
        waiting = await self.join_together(
            *({**changes, "member_id": member_id} for member_id, changes in zip(ids, members, strict=True))
        )
        joined = [answer_of(task) for task in waiting]
        generation = joined[0].generation_id
        leader = next(response for response in joined if response.members)
        assignments = {response.member_id: f"a-{response.member_id}".encode() for response in joined}
        for response in joined:
            is_leader = response is leader
            await self.start_sync(response.member_id, generation, assignments if is_leader else None)
        assert self.state() is GroupState.STABLE
        return joined

    def state(self) -> GroupState:
        return self.coordinator.describe_group("g").state

    async def commit(self, *offsets: tuple[str, int, int], **changes: object) -> list[StrandlineError | None]:
        request = CommitRequest(
            group_id="g", offsets=tuple(PartitionCommit(topic=t, partition=p, offset=o) for t, p, o in offsets)
        )
        return await self.coordinator.commit(replace(request, **changes))  # type: ignore[arg-type]


def answer_of(task: asyncio.Task[T]) -> T:
    assert task.done(), "the request is still waiting"
    return task.result()
