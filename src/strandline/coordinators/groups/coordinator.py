"""The group coordinator: finds the shard that coordinates a group, and turns its callbacks into answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from strandline.clock import Clock, Ids
from strandline.config import GroupSettings
from strandline.config.share_groups import DEFAULT_SHARE_SETTINGS, ShareGroupSettings
from strandline.coordinators.fields import LONGEST_STRING
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.description import describe
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import check_request
from strandline.coordinators.groups.consumer.regular_expressions import BackgroundMatcher
from strandline.coordinators.groups.consumer.values import DescribedConsumerGroup, HeartbeatRequest
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.modern.values import DescribedModernGroup, HeartbeatResponse
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.subscription import CONSUMER_PROTOCOL
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
from strandline.coordinators.runtime import (
    CoordinatorLog,
    CoordinatorPartitionWriter,
    CoordinatorRuntime,
    CoordinatorState,
    InternalTopic,
    TransactionEnd,
    WriteResult,
    client_error,
    wait_result,
)
from strandline.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    InvalidSessionTimeout,
    NotCoordinator,
    NotLeaderOrFollower,
    RequestTimedOut,
    StrandlineError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from strandline.metadata import Images, MetadataDelta, MetadataImage, finalized_level
from strandline.metadata.features import GROUP_VERSION
from strandline.model import GROUP_METADATA_TOPIC, ProducerAndEpoch, TopicPartition
from strandline.records import Codec

T = TypeVar("T")

_FIRST_WITH_CONSUMER_PROTOCOL = 1
# Some milliseconds of work.
GROUPS_PER_TURN: Final = 2_000


def offsets_topic(settings: GroupSettings) -> InternalTopic:
    """`__consumer_offsets`, as the settings describe it."""
    return InternalTopic(
        name=GROUP_METADATA_TOPIC,
        partitions=settings.offsets_topic_num_partitions,
        codec=Codec(settings.offsets_topic_compression_codec),
        load_buffer_bytes=settings.offsets_load_buffer_size,
        base_sequence=0,
    )


class GroupCoordinator:
    """Every request about groups, for the groups whose partition this broker leads.

    Methods return errors as values where the protocol has a place for them, and raise them where one error is the whole
    answer. A cancelled call may or may not have taken effect. `runtime` owns the partitions and must be notified of
    changes of their leaders.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        images: Images,
        *,
        clock: Clock,
        ids: Ids,
        settings: GroupSettings,
        share_settings: ShareGroupSettings = DEFAULT_SHARE_SETTINGS,
    ) -> None:
        self._clock, self._ids, self._settings, self._share_settings = clock, ids, settings, share_settings
        self._log = log
        self._topics = TopicIncarnations(images)
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            "group", log, self._make_shard, clock=clock, write_timeout_ms=settings.offsets_commit_timeout_ms
        )
        self.runtime.sweep_every(settings.offsets_retention_check_interval_ms, GroupShard.expire)

    def _make_shard(self, writer: CoordinatorPartitionWriter) -> GroupShard:
        return GroupShard(
            writer,
            self.runtime.timers,
            self._clock,
            self._ids,
            self._settings,
            self._topics,
            BackgroundMatcher(),
            self._share_settings,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GroupCoordinator]:
        """Serve inside the block. Leaving it unloads every partition: waiting requests get NotCoordinator."""
        async with self.runtime.running():
            yield self

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Topics were deleted: look at their offsets. A shard that is loading does so when it is loaded."""
        deleted = frozenset(topic.name for topic in delta.deleted_topics.values())
        if deleted:
            self.runtime.sweep_once(lambda shard: shard.drop_stale_offsets(deleted))
            self.runtime.sweep_once(GroupShard.forget_vanished_topics)

    def follow_settings(self, settings: GroupSettings, share_settings: ShareGroupSettings) -> None:
        """The settings of the broker have changed: those that Kafka can change while it runs count from now on."""
        self._settings, self._share_settings = settings, share_settings
        self.runtime.for_each_shard(lambda shard: shard.consumer.follow_settings(settings))
        self.runtime.for_each_shard(lambda shard: shard.share.follow_settings(share_settings))

    def status(self) -> GroupsStatus:
        """What this broker coordinates now."""
        owned = list(self.runtime.contexts)
        return GroupsStatus(
            shards=len(owned),
            loading=sum(context.state is CoordinatorState.LOADING for context in owned),
            failed=sum(context.state is CoordinatorState.FAILED for context in owned),
            offsets=sum(len(context.shard.offsets) for context in owned),
            groups=Counter(group.state for context in owned for group in context.shard.groups.values()),
            timers=len(self.runtime.timers),
        )

    # Finding ----------------------------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return self.runtime.partition_for(group_id)

    def _shard_for_member(self, group_id: str) -> GroupShard:
        if not group_id:
            raise InvalidGroupId("The group id is empty.")
        return self.runtime.shard_for(group_id)

    # Members ----------------------------------------------------------------------------------------------------

    async def join(self, request: JoinRequest) -> JoinResponse:
        """Answers when the rebalance that the member takes part in is complete, or at once with an error."""
        try:
            self._check_join(request)
            shard = self._shard_for_member(request.group_id)
        except StrandlineError as error:
            return JoinResponse(error=error, member_id=request.member_id)
        return await wait_result(lambda reply: shard.memberships.join(request, reply))

    def _check_join(self, request: JoinRequest) -> None:
        if not request.group_id:
            raise InvalidGroupId("The group id is empty.")
        texts = [request.group_id, request.group_instance_id or "", request.protocol_type, request.client_id]
        for text in (*texts, *(protocol.name for protocol in request.protocols)):
            if len(text.encode()) > LONGEST_STRING - 64:  # a member id is the client id or instance id, and a UUID
                raise InvalidRequest(f"A string of {len(text)} characters is too long for the record of a group.")
        least, most = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        if not least <= request.session_timeout_ms <= most:
            raise InvalidSessionTimeout(
                f"The session timeout has to be between {least} and {most} ms, not {request.session_timeout_ms}."
            )

    async def sync(self, request: SyncRequest) -> SyncResponse:
        """Answers when the leader's assignment is stored."""
        try:
            shard = self._shard_for_member(request.group_id)
        except StrandlineError as error:
            return SyncResponse(error=error)
        return await wait_result(lambda reply: shard.memberships.sync(request, reply))

    def heartbeat(
        self, group_id: str, member_id: str, generation_id: int, group_instance_id: str | None = None
    ) -> None:
        """Raises the error that the member has to react to. While the partition loads, every heartbeat succeeds."""
        try:
            shard = self._shard_for_member(group_id)
        except CoordinatorLoadInProgress:
            return
        shard.memberships.heartbeat(group_id, member_id, generation_id, group_instance_id)

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[StrandlineError | None]:
        """One answer per member."""
        return self._shard_for_member(group_id).memberships.leave(group_id, leaving)

    async def consumer_heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """The consumer protocol: answers when what was decided is in the log, or at once with an error."""
        try:
            self._check_consumer_protocol()
            check_request(request, self._settings.group_consumer_assignors)
            shard = self.runtime.shard_for(request.group_id)
            return await self.runtime.wait_written(lambda reply: shard.consumer.heartbeat(request, reply))
        except StrandlineError as error:
            return HeartbeatResponse(error=error)

    def _check_consumer_protocol(self) -> None:
        if CONSUMER_PROTOCOL not in self._settings.group_coordinator_rebalance_protocols:
            raise UnsupportedVersion("group.coordinator.rebalance.protocols does not name the consumer protocol.")
        if finalized_level(self._topics.image, GROUP_VERSION) < _FIRST_WITH_CONSUMER_PROTOCOL:
            raise UnsupportedVersion("The feature group.version has level 0: there are no consumer groups of KIP-848.")

    # Offsets ----------------------------------------------------------------------------------------------------

    def has_transaction(self, group_id: str, producer: ProducerAndEpoch) -> bool:
        """Whether the producer has a transaction open here, which offsets of the group join without another permission.

        Refuses a producer that has committed offsets here with a later epoch. Raises a StrandlineError.
        """
        shard = self.runtime.shard_for(group_id)
        try:
            self._log.check_epoch(self.partition_for(group_id), producer)
            return shard.has_transaction(producer)
        except (NotLeaderOrFollower, UnknownTopicOrPartition) as error:
            raise client_error(error) from error

    async def commit(self, request: CommitRequest) -> list[StrandlineError | None]:
        """One answer per offset, when they are committed in the log. Raises an error that concerns all of them."""
        shard = self.runtime.shard_for(request.group_id)
        return await self._written(lambda done: shard.commit(request, done))

    async def commit_when(
        self, allow: Callable[[Callable[[StrandlineError | None], None]], None], request: CommitRequest
    ) -> list[StrandlineError | None]:
        """Commit as soon as `allow` calls back without an error. Raises that error, too.

        Nothing is written to the group's log in between: a marker that comes later is behind the offsets.
        """

        def start(done: Callable[[list[StrandlineError | None] | StrandlineError], None]) -> None:
            def decided(error: StrandlineError | None) -> None:
                if error is not None:
                    done(error)
                    return
                try:
                    self.runtime.shard_for(request.group_id).commit(request, done)
                except StrandlineError as refusal:
                    done(refusal)

            allow(decided)

        return await self._written(start)

    async def end_transaction(self, partition: int, end: TransactionEnd) -> None:
        """Write a marker to a partition of `__consumer_offsets`: the transaction's offsets count, or are dropped.

        Raises the refusal of the log, NotLeaderOrFollower while the partition is not loaded here, or RequestTimedOut.
        """
        try:
            shard = self.runtime.shard_of(partition)
        except StrandlineError as error:
            raise NotLeaderOrFollower(str(error)) from error
        try:
            written: WriteResult = await self.runtime.wait_written(lambda done: shard.end_transaction(end, done))
        except CoordinatorNotAvailable as error:
            raise RequestTimedOut(str(error)) from error
        if written.error is not None:
            raise written.error

    async def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
    ) -> list[CommittedOffset]:
        """Committed offsets of these partitions, or of all. Stable offsets wait for commits that are under way.

        A member of a consumer group may name its epoch: it is refused if that is not its current one.
        """
        shard = self.runtime.shard_for(group_id)
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup) and isinstance(group, ConsumerGroup):  # the second question costs a call
            group.check_fetch(member_id, member_epoch)
        if not require_stable:
            return shard.fetch(group_id, partitions)
        try:
            written: WriteResult = await self.runtime.wait_written(shard.fence)
        except CoordinatorNotAvailable as error:
            written = WriteResult(error)
        if written.error is not None:
            # Older consumers understand NOT_COORDINATOR here, and look for the coordinator again.
            raise NotCoordinator(f"Offsets of group {group_id} cannot be read now: {written.error}")
        return shard.mark_unstable(group_id, shard.fetch(group_id, partitions))

    async def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> list[StrandlineError | None]:
        """One answer per partition. Raises an error that concerns all of them."""
        shard = self._shard_for_member(group_id)
        return await self._written(lambda done: shard.delete_offsets(group_id, partitions, done))

    # Groups -----------------------------------------------------------------------------------------------------

    async def delete_groups(self, group_ids: Sequence[str]) -> list[StrandlineError | None]:
        """One answer per group."""
        return list(await asyncio.gather(*map(self._delete_group, group_ids)))

    async def _delete_group(self, group_id: str) -> StrandlineError | None:
        try:
            shard = self.runtime.shard_for(group_id)
            error: StrandlineError | None = await self.runtime.wait_written(
                lambda done: shard.delete_group(group_id, done)
            )
        except StrandlineError as refusal:
            return refusal
        return None if error is None else client_error(error)

    @property
    def group_count(self) -> int:
        """How many groups this broker coordinates."""
        return sum(
            len(context.shard.groups) for context in self.runtime.contexts if context.state is CoordinatorState.ACTIVE
        )

    @property
    def group_states(self) -> Counter[GroupState]:
        """How many of them are in which state."""
        active = (context for context in self.runtime.contexts if context.state is CoordinatorState.ACTIVE)
        return Counter(group.state for context in active for group in context.shard.groups.values())

    async def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """The groups of this broker, filtered by the names of states and types, whatever their case. No filter: all.

        In short turns: groups that come, go or change their state meanwhile are listed as one turn sees them.
        """
        self.runtime.check_all_loaded()
        wanted_states, wanted_types = {s.lower() for s in states}, {t.lower() for t in types}
        listed: list[ListedGroup] = []
        async for some in self.runtime.in_turns(lambda shard: shard.groups, GROUPS_PER_TURN):
            listed += [
                group.listed()
                for group in some
                if (not wanted_states or group.state.value.lower() in wanted_states)
                and (not wanted_types or group.group_type.value in wanted_types)
            ]
        return listed

    def describe_group(self, group_id: str) -> DescribedGroup:
        """A group that is not here is described as Dead, with GroupIdNotFound. Raises coordinator errors."""
        group = self.runtime.shard_for(group_id).groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return DescribedGroup(group_id=group_id, error=GroupIdNotFound(f"Group {group_id} not found."))
        if group.group_type is not GroupType.CLASSIC:
            error = GroupIdNotFound(f"Group {group_id} is not a classic group.")
            return DescribedGroup(group_id=group_id, error=error)
        return group.described()

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """The members and assignments of a consumer group, or the error that says why not."""
        try:
            self._check_consumer_protocol()
            if not group_id:
                raise InvalidGroupId("The group id is empty.")
            group = self.runtime.shard_for(group_id).consumer.table.existing(group_id)
        except StrandlineError as error:
            return DescribedModernGroup(group_id=group_id, error=error)
        return describe(group, self._settings.group_consumer_assignors[0])

    async def _written(self, start: Callable[[Callable[[T | StrandlineError], None]], None]) -> T:
        """The result of a decision that is written. Raises the refusal of the log, as clients know it."""
        result = await self.runtime.wait_written(start)
        if isinstance(result, StrandlineError):
            raise client_error(result) from result
        return result
