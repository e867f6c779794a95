"""A classic group: members, generation and protocol. It holds the state; `classic` decides what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from strandline.coordinators.groups.member import ClassicMember
from strandline.coordinators.groups.schemas import GroupValue, OffsetValue, write_group_key
from strandline.coordinators.groups.states import GroupState, GroupType, check_move
from strandline.coordinators.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics
from strandline.coordinators.groups.values import (
    CommitRequest,
    DescribedGroup,
    JoinedMember,
    ListedGroup,
    MemberProtocol,
)
from strandline.coordinators.runtime import KeyValue, Timer
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from strandline.model import NO_TIMESTAMP


class ClassicGroup:
    """The state of one group. Every change of `state` is checked against the table of legal moves."""

    __slots__ = (
        "_missing",
        "_state",
        "_supporters",
        "generation",
        "group_id",
        "has_new_member",
        "instances",
        "join_timer",
        "leader",
        "members",
        "pending",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state_timestamp",
        "storing_generation",
        "sync_timer",
        "topics",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self._state = GroupState.EMPTY
        self._supporters: dict[str, int] = {}
        """How many members support a protocol; counted as members join and leave, which is fast in large groups. Names
        that no member supports are not in it."""
        self.previous_state = GroupState.DEAD
        self.state_timestamp = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.instances: dict[str, str] = {}
        """Member id by group instance id."""
        self.pending: dict[str, Timer] = {}
        """Ids given out that have not joined yet (KIP-394), with the timers that forget them."""
        self._missing: list[str] = []
        """Members that had not joined when all were looked at; some have since."""
        self.pending_sync: set[str] = set()
        self.has_new_member = False
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self.storing_generation = -1
        """The generation whose assignment is on its way to the log."""
        self.topics: frozenset[str] | None = None
        """Topics the members subscribe to; None if not known."""

    @classmethod
    def loaded(cls, group_id: str, value: GroupValue) -> ClassicGroup:
        """The group as the log has it: stable if it has members, else empty. Sessions are not started."""
        group = cls(group_id, value.state_timestamp)
        group.protocol_type = value.protocol_type or None
        for member in value.members:
            group.add(ClassicMember.loaded(member, value.protocol_type, value.protocol or ""))
        group._state = GroupState.STABLE if value.members else GroupState.EMPTY
        group.generation, group.protocol_name = value.generation, value.protocol
        group.leader = value.leader if value.leader in group.members else next(iter(group.members), None)
        group.topics = group._computed_topics()
        return group

    @classmethod
    def stable(cls, group_id: str, members: Iterable[ClassicMember], *, generation: int, now_ms: int) -> ClassicGroup:
        """A group that has an assignment: it comes from another protocol. Sessions are not started."""
        group = cls(group_id, now_ms)
        for member in members:
            group.add(member)
        group._state = GroupState.STABLE
        group.generation, group.protocol_name = generation, group.select_protocol()
        group.topics = group._computed_topics()
        return group

    # State ------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        return self._state

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC

    def move_to(self, state: GroupState, now_ms: int) -> None:
        check_move(self.group_id, self._state, state)
        self.previous_state, self._state = self._state, state
        self.state_timestamp = now_ms

    @property
    def can_rebalance(self) -> bool:
        return self._state in (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def may_be_deleted(self) -> bool:
        return self._state is GroupState.EMPTY and not self.pending

    def tombstones(self) -> list[KeyValue]:
        return [(write_group_key(self.group_id), None)]

    # Members ----------------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            self.instances[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_supporter(member, 1)
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Take a member or a pending id out. Its waiting requests stay with it: the caller answers them."""
        member = self.members.pop(member_id, None)
        if member is not None:
            member.end_session()
            self._count_supporter(member, -1)
            if member.group_instance_id is not None:
                self.instances.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_sync.discard(member_id)
        return member

    def rename_static(self, member: ClassicMember, new_id: str) -> None:
        """Give a static member another id; the old id is fenced from now on."""
        old_id = member.member_id
        del self.members[old_id]
        member.member_id = new_id
        self.members[new_id] = member
        if member.group_instance_id is not None:
            self.instances[member.group_instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.pending_sync:
            self.pending_sync.discard(old_id)
            self.pending_sync.add(new_id)

    def set_protocols(self, member: ClassicMember, protocols: tuple[MemberProtocol, ...]) -> None:
        """A member supports other protocols than before, or has other metadata for them."""
        self._count_supporter(member, -1)
        member.protocols = protocols
        self._count_supporter(member, 1)

    def _count_supporter(self, member: ClassicMember, by: int) -> None:
        for name in member.protocol_names:
            count = self._supporters.get(name, 0) + by
            if count:
                self._supporters[name] = count
            else:
                del self._supporters[name]

    def forget_pending(self, member_id: str) -> None:
        timer = self.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member, if the id and the instance id belong together. Raises UnknownMemberId or FencedInstanceId."""
        if group_instance_id is not None:
            known_id = self.instances.get(group_instance_id)
            if known_id is not None and known_id != member_id:
                raise FencedInstanceId(
                    f"group.instance.id {group_instance_id} of group {self.group_id} belongs to another member now."
                )
        member = self.members.get(member_id)
        if member is None or (group_instance_id is not None and group_instance_id not in self.instances):
            raise UnknownMemberId(f"Group {self.group_id} has no member {member_id!r}.")
        return member

    def check_generation(self, generation_id: int) -> None:
        if generation_id != self.generation:
            raise IllegalGeneration(
                f"Group {self.group_id} is in generation {self.generation}, the request names {generation_id}."
            )

    @property
    def awaiting_join(self) -> int:
        return sum(member.is_awaiting_join for member in self.members.values())

    @property
    def have_all_joined(self) -> bool:
        """Asked at each join: one member that was missing the last time answers it, as long as it is missing."""
        if self.pending:
            return False
        while self._missing:
            member = self.members.get(self._missing[-1])
            if member is not None and not member.is_awaiting_join:
                return False
            self._missing.pop()
        self._missing = [member.member_id for member in self.members.values() if not member.is_awaiting_join]
        return not self._missing

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it rejoined, else take the first member that did. False if none did."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.is_awaiting_join:
            return True
        joined = next((member.member_id for member in self.members.values() if member.is_awaiting_join), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    # Protocols --------------------------------------------------------------------------------------------------

    def common_protocols(self) -> set[str]:
        """The names that every member supports."""
        return {name for name, count in self._supporters.items() if count == len(self.members)}

    def supports(self, protocol_type: str, protocols: tuple[MemberProtocol, ...]) -> bool:
        """Whether a member with these protocols can be in the group together with the others."""
        if self._state is GroupState.EMPTY or not self.members:
            return bool(protocol_type) and bool(protocols)
        member_count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supporters.get(p.name) == member_count for p in protocols
        )

    def select_protocol(self) -> str | None:
        """Each member votes for the first of its protocols that all support; most votes win."""
        common = self.common_protocols()
        votes = Counter(member.vote(common) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def start_next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.topics = self._computed_topics()
        self.pending_sync.clear()
        self.move_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    def _computed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer or (self.members and self.protocol_name is None):
            return None
        return subscribed_topics(member.metadata_for(self.protocol_name) for member in self.members.values())

    # Questions --------------------------------------------------------------------------------------------------

    def check_commit(self, request: CommitRequest) -> None:
        if self._state is GroupState.DEAD:
            raise CoordinatorNotAvailable(f"Group {self.group_id} is being removed.")
        if request.generation_id < 0 and self._state is GroupState.EMPTY:
            return
        is_transactional = request.producer is not None
        if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
            if is_transactional:
                return  # old versions of TxnOffsetCommit do not say who commits
            raise UnknownMemberId(
                f"Group {self.group_id} has members, so only they may commit offsets; stop them first."
            )
        self.check_member(request.member_id, request.group_instance_id)
        self.check_generation(request.generation_id)
        if self._state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            raise RebalanceInProgress(f"Group {self.group_id} is rebalancing; commit after the new assignment.")

    def check_offset_delete(self) -> None:
        if self._state is GroupState.DEAD:
            raise GroupIdNotFound(f"Group {self.group_id} is in dead state.")
        if self._state is not GroupState.EMPTY and not self.is_consumer:
            raise NonEmptyGroup(f"Group {self.group_id} has members that may use these offsets.")

    def check_delete(self) -> None:
        if self._state is GroupState.DEAD:
            raise GroupIdNotFound(f"Group {self.group_id} is in dead state.")
        if self._state is not GroupState.EMPTY:
            raise NonEmptyGroup(f"Group {self.group_id} has {len(self.members)} members; stop them first.")

    def is_subscribed_to(self, topic: str) -> bool:
        return self.is_consumer if self.topics is None else topic in self.topics

    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None:
        if self.protocol_type is None:
            base = offset.commit_timestamp
        elif self._state is GroupState.EMPTY:
            base = self.state_timestamp if self.state_timestamp != NO_TIMESTAMP else offset.commit_timestamp
        elif self._state is GroupState.STABLE and self.is_consumer and self.topics is not None:
            base = offset.commit_timestamp
        else:
            return None
        return offset.expire_timestamp if offset.expire_timestamp != NO_TIMESTAMP else base + retention_ms

    def joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(member.joined(self.protocol_name) for member in self.members.values())

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            state=self._state,
            group_type=self.group_type,
        )

    def described(self) -> DescribedGroup:
        shown = self.protocol_name if self._state is GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            state=self._state,
            protocol_type=self.protocol_type or "",
            protocol_name=shown or "",
            members=tuple(member.described(shown) for member in self.members.values()),
        )

    def stored(self, assignments: Mapping[str, bytes]) -> GroupValue:
        """The record of this generation with the given assignments."""
        protocol = self.protocol_name
        return GroupValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader,
            state_timestamp=self.state_timestamp,
            members=tuple(m.stored(protocol or "", assignments.get(m.member_id, b"")) for m in self.members.values()),
        )
