"""The group coordinator: finds the shard of a group and lets it decide; owns shards, timers and tasks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from strandline.clock import Clock, Ids
from strandline.config.groups import GroupSettings
from strandline.coordinators.groups.fields import LONGEST_STRING
from strandline.coordinators.groups.log import GroupLog
from strandline.coordinators.groups.ownership import OwnedShard, ShardState
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import (
    CommitRequest,
    CommittedOffset,
    DescribedGroup,
    GroupsStatus,
    JoinRequest,
    JoinResponse,
    LeavingMember,
    ListedGroup,
    SyncRequest,
    SyncResponse,
)
from strandline.coordinators.groups.writes import LogWriter, Written, client_error
from strandline.coordinators.timers import Timer, Timers
from strandline.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    InvalidSessionTimeout,
    NotCoordinator,
    StrandlineError,
)
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import MetadataImage
from strandline.model import LeaderEpoch, TopicPartition, coordinator_partition
from strandline.replication import Partition

T = TypeVar("T")


class GroupCoordinator:
    """Every request about groups, for the groups whose partition this broker leads.

    Methods answer errors as values where the protocol has a place for them, and raise them where one error is the
    whole answer. A cancelled call may or may not have taken effect.
    """

    def __init__(self, log: GroupLog, *, clock: Clock, ids: Ids, settings: GroupSettings) -> None:
        self._log, self._clock, self._ids, self._settings = log, clock, ids, settings
        self._timers = Timers(clock)
        self._shards: dict[int, OwnedShard] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._own_tasks: set[asyncio.Task[None]] = set()
        self._sweep_timer: Timer | None = None
        self._to_sweep: list[int] = []

    # Life -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GroupCoordinator]:
        """Serve inside the block. Leaving it gives up every shard: whoever waits is sent elsewhere."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._spawn(self._timers.run())
            try:
                yield self
            finally:
                for partition in list(self._shards):
                    self.resigned(partition)
                self._tasks = None
                for task in self._own_tasks:
                    task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._tasks is None:
            work.close()
            raise RuntimeError("the group coordinator is not running")
        task = self._tasks.create_task(work)
        self._own_tasks.add(task)
        task.add_done_callback(self._own_tasks.discard)
        return task

    def leadership_gained(self, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        """`replication.LeadershipListener`."""
        self.elected(partition.topic_partition.partition, leader_epoch)

    def leadership_lost(self, partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        """`replication.LeadershipListener`."""
        self.resigned(partition.partition)

    def elected(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        """This broker leads the partition: load its groups, unless it has them already."""
        owned = self._shards.get(partition)
        if owned is not None and owned.state is not ShardState.FAILED:
            owned.leader_epoch = leader_epoch
            return
        writer = LogWriter(partition, self._log, self._clock, self._spawn)
        shard = GroupShard(writer, self._timers, self._clock, self._ids, self._settings)
        owned = OwnedShard(partition, leader_epoch, shard, writer)
        self._shards[partition] = owned
        owned.loading = self._spawn(owned.load(self._log, self._clock))
        if self._sweep_timer is None:
            interval = self._settings.offsets_retention_check_interval_ms
            self._sweep_timer = self._timers.after(interval, self._sweep)

    def resigned(self, partition: int) -> None:
        """This broker does not lead the partition any more: forget its groups."""
        owned = self._shards.pop(partition, None)
        if owned is not None:
            owned.close(NotCoordinator("another broker coordinates this group now"))
        if not self._shards and self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow the metadata: offsets of deleted topics go."""
        gone = frozenset(topic.name for topic in delta.deleted_topics.values())
        if gone:
            for owned in self._shards.values():
                owned.drop_topics(gone)

    def _sweep(self) -> None:
        """Expire offsets of one shard; the others follow in turns of their own, so that nobody waits long."""
        if not self._to_sweep:
            self._to_sweep = list(self._shards)
        owned = self._shards.get(self._to_sweep.pop())
        if owned is not None and owned.state is ShardState.ACTIVE:
            owned.shard.expire()
        if self._sweep_timer is not None:
            is_done = not self._to_sweep
            self._sweep_timer.restart(self._settings.offsets_retention_check_interval_ms if is_done else 0)

    async def wait_loaded(self) -> None:
        """Return when no shard is loading."""
        loading = [owned.loading for owned in self._shards.values() if owned.loading is not None]
        await asyncio.gather(*loading, return_exceptions=True)

    def status(self) -> GroupsStatus:
        """What this broker coordinates now."""
        shards = list(self._shards.values())
        return GroupsStatus(
            shards=len(shards),
            loading=sum(owned.state is ShardState.LOADING for owned in shards),
            failed=sum(owned.state is ShardState.FAILED for owned in shards),
            offsets=sum(len(owned.shard.offsets) for owned in shards),
            groups=Counter(group.state for owned in shards for group in owned.shard.groups.values()),
            timers=len(self._timers),
        )

    # Finding ----------------------------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return coordinator_partition(group_id, self._log.partition_count())

    def _shard_for(self, group_id: str) -> GroupShard:
        if self._tasks is None:
            raise CoordinatorNotAvailable("the group coordinator is not running")
        owned = self._shards.get(self.partition_for(group_id))
        if owned is None or owned.state is ShardState.FAILED:
            raise NotCoordinator(f"this broker does not coordinate group {group_id}")
        if owned.state is ShardState.LOADING:
            raise CoordinatorLoadInProgress(f"the coordinator of group {group_id} is still reading its log")
        return owned.shard

    def _shard_for_member(self, group_id: str) -> GroupShard:
        if not group_id:
            raise InvalidGroupId("the group id is empty")
        return self._shard_for(group_id)

    # Members ----------------------------------------------------------------------------------------------------

    async def join(self, request: JoinRequest) -> JoinResponse:
        """Wait for the rebalance that the join takes part in, if it does."""
        try:
            self._check_join(request)
            shard = self._shard_for_member(request.group_id)
        except StrandlineError as error:
            return JoinResponse(error=error, member_id=request.member_id)
        future: asyncio.Future[JoinResponse] = asyncio.get_running_loop().create_future()
        shard.classic.join(request, _resolver(future))
        return await future

    def _check_join(self, request: JoinRequest) -> None:
        if not request.group_id:
            raise InvalidGroupId("the group id is empty")
        texts = [request.group_id, request.group_instance_id or "", request.protocol_type, request.client_id]
        for text in (*texts, *(protocol.name for protocol in request.protocols)):
            if len(text.encode()) > LONGEST_STRING - 64:  # a member id is a text and a UUID
                raise InvalidRequest(f"a text of {len(text)} characters is too long for a group's record")
        least, most = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        if not least <= request.session_timeout_ms <= most:
            raise InvalidSessionTimeout(
                f"the session timeout has to be between {least} and {most} ms, not {request.session_timeout_ms}"
            )

    async def sync(self, request: SyncRequest) -> SyncResponse:
        """Wait for the leader's assignment."""
        try:
            shard = self._shard_for_member(request.group_id)
        except StrandlineError as error:
            return SyncResponse(error=error)
        future: asyncio.Future[SyncResponse] = asyncio.get_running_loop().create_future()
        shard.classic.sync(request, _resolver(future))
        return await future

    def heartbeat(
        self, group_id: str, member_id: str, generation_id: int, group_instance_id: str | None = None
    ) -> None:
        """Raises what the member has to know. While the group is loading every heartbeat is taken as good."""
        try:
            shard = self._shard_for_member(group_id)
        except CoordinatorLoadInProgress:
            return
        shard.classic.heartbeat(group_id, member_id, generation_id, group_instance_id)

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[StrandlineError | None]:
        """One answer per member."""
        return self._shard_for_member(group_id).classic.leave(group_id, leaving)

    # Offsets ----------------------------------------------------------------------------------------------------

    async def commit(self, request: CommitRequest) -> list[StrandlineError | None]:
        """One answer per offset, when the log has them. Raises what concerns them all."""
        shard = self._shard_for(request.group_id)
        return await self._result_of(lambda done: shard.commit(request, done))

    async def fetch(
        self, group_id: str, partitions: Sequence[TopicPartition] | None, *, require_stable: bool = False
    ) -> list[CommittedOffset]:
        """Committed offsets: of these partitions, or all. Stable ones wait for commits that are on their way."""
        shard = self._shard_for(group_id)
        if not require_stable:
            return shard.fetch(group_id, partitions)
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        shard.fence(_resolver(future))
        written = await future
        if written.error is not None:
            # Older consumers know NOT_COORDINATOR here and look for the coordinator again.
            raise NotCoordinator(f"offsets of group {group_id} cannot be read now: {written.error}")
        return shard.mark_unstable(group_id, shard.fetch(group_id, partitions))

    async def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> list[StrandlineError | None]:
        """One answer per partition. Raises what concerns them all."""
        shard = self._shard_for_member(group_id)
        return await self._result_of(lambda done: shard.delete_offsets(group_id, partitions, done))

    async def _result_of(self, start: Callable[[Callable[[T | StrandlineError], None]], None]) -> T:
        future: asyncio.Future[T | StrandlineError] = asyncio.get_running_loop().create_future()
        start(_resolver(future))
        result = await future
        if isinstance(result, StrandlineError):
            raise client_error(result) from result
        return result

    # Groups -----------------------------------------------------------------------------------------------------

    async def delete_groups(self, group_ids: Sequence[str]) -> list[StrandlineError | None]:
        """One answer per group."""
        return list(await asyncio.gather(*map(self._delete_group, group_ids)))

    async def _delete_group(self, group_id: str) -> StrandlineError | None:
        try:
            future: asyncio.Future[StrandlineError | None] = asyncio.get_running_loop().create_future()
            self._shard_for(group_id).delete_group(group_id, _resolver(future))
        except StrandlineError as refusal:
            return refusal
        error = await future
        return None if error is None else client_error(error)

    @property
    def group_count(self) -> int:
        """How many groups this broker coordinates."""
        return sum(len(owned.shard.groups) for owned in self._shards.values() if owned.state is ShardState.ACTIVE)

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """The groups of this broker, filtered by names of states and types in any case; no filter: all."""
        if self._tasks is None:
            raise CoordinatorNotAvailable("the group coordinator is not running")
        if any(owned.state is ShardState.LOADING for owned in self._shards.values()):
            raise CoordinatorLoadInProgress("the coordinator is still reading its log")
        wanted_states, wanted_types = {s.lower() for s in states}, {t.lower() for t in types}
        return [
            group.listed()
            for owned in self._shards.values()
            for group in owned.shard.groups.values()
            if (not wanted_states or group.state.value.lower() in wanted_states)
            and (not wanted_types or group.group_type.value in wanted_types)
        ]

    def describe_group(self, group_id: str) -> DescribedGroup:
        """A group that is not here is described as Dead, with GroupIdNotFound. Raises coordinator errors."""
        group = self._shard_for(group_id).groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return DescribedGroup(group_id=group_id, error=GroupIdNotFound(f"Group {group_id} not found."))
        if group.group_type is not GroupType.CLASSIC:
            error = GroupIdNotFound(f"Group {group_id} is not a classic group.")
            return DescribedGroup(group_id=group_id, error=error)
        return group.described()


def _resolver(future: asyncio.Future[T]) -> Callable[[T], None]:
    """A callback that answers the future, unless whoever waited for it has gone."""

    def resolve(result: T) -> None:
        if not future.done():
            future.set_result(result)

    return resolve
