"""A consumer group: its members, its target assignment, and who owns what. It changes by records only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.schemas import (
    ConsumerRecordKey,
    ConsumerRecordType,
    ConsumerRecordValue,
    RegularExpressionValue,
    read_consumer_value,
    write_consumer_value,
)
from strandline.coordinators.groups.modern.group import ModernGroup, ModernRecordTypes, discount
from strandline.coordinators.groups.modern.partitions import pairs
from strandline.coordinators.groups.modern.records import ModernRecordKey
from strandline.coordinators.groups.schemas import OffsetValue
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.subscription import CONSUMER_PROTOCOL
from strandline.coordinators.groups.values import CommitRequest
from strandline.errors import IllegalGeneration, StaleMemberEpoch, UnsupportedVersion
from strandline.model import NO_TIMESTAMP


class ConsumerGroup(ModernGroup[ConsumerMember]):
    """Its own: partitions have one owner, topics are matched by regular expressions, members may be static."""

    group_type = GroupType.CONSUMER
    protocol_type = CONSUMER_PROTOCOL
    key_type = ConsumerRecordKey
    independent = (ConsumerRecordType.REGULAR_EXPRESSION,)
    types = ModernRecordTypes(
        group_epoch=ConsumerRecordType.GROUP_EPOCH,
        target_epoch=ConsumerRecordType.TARGET_EPOCH,
        target=ConsumerRecordType.TARGET,
        member=ConsumerRecordType.MEMBER,
        assignment=ConsumerRecordType.CURRENT_ASSIGNMENT,
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.expressions: dict[str, RegularExpressionValue] = {}
        """Regular expressions that were matched against the topics."""
        self.instances: dict[str, str] = {}
        """Member id by group instance id."""
        self._owners: Counter[tuple[UUID, int]] = Counter()
        """How many members own each partition: two in a log with a gap, or if classic members shared it."""
        self._expression_readers: Counter[str] = Counter()
        # Not in the log:
        self.matched_topics: frozenset[str] | None = None
        """The topics that the expressions were matched against last."""
        self.match_begun_ms: int | None = None
        """When this broker last began to match the expressions, in milliseconds."""

    # Records ----------------------------------------------------------------------------------------------------

    def new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id=member_id)

    def other_keys(self) -> Iterator[ModernRecordKey]:
        for expression in self.expressions:
            yield self.key(ConsumerRecordType.REGULAR_EXPRESSION, expression)
        yield self.key(ConsumerRecordType.PARTITION_METADATA)

    def apply_other(self, key: ModernRecordKey, value: Any | None) -> None:
        """Records of partition metadata are of earlier versions, and say nothing that the metadata does not say."""
        if key.kind is ConsumerRecordType.REGULAR_EXPRESSION:
            if value is None:
                self.expressions.pop(key.name, None)
            else:
                self.expressions[key.name] = value

    def other_value_of(self, key: ModernRecordKey) -> RegularExpressionValue | None:
        return self.expressions.get(key.name) if key.kind is ConsumerRecordType.REGULAR_EXPRESSION else None

    @staticmethod
    def write_value(value: ConsumerRecordValue) -> bytes:
        return write_consumer_value(value)

    @staticmethod
    def read_value(kind: ConsumerRecordType, data: bytes) -> ConsumerRecordValue | None:
        return read_consumer_value(kind, data)

    def remember(self, member: ConsumerMember) -> None:
        super().remember(member)
        for owned in (member.assigned, member.pending_revocation):
            self._owners.update(pairs(owned))
        if member.regex:
            self._expression_readers[member.regex] += 1
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id

    def forget(self, member: ConsumerMember) -> None:
        super().forget(member)
        for owned in (member.assigned, member.pending_revocation):
            discount(self._owners, pairs(owned))
        if member.regex:
            discount(self._expression_readers, [member.regex])
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.member_id:
            del self.instances[member.instance_id]

    # Questions of the protocol --------------------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def is_owned(self, topic_id: UUID, partition: int) -> bool:
        """Whether a member owns the partition, or has not given it up yet."""
        return (topic_id, partition) in self._owners

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.instances.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members.get(member_id)

    @property
    def subscribed_expressions(self) -> frozenset[str]:
        return frozenset(self._expression_readers)

    @property
    def has_expressions(self) -> bool:
        """Whether a member subscribes to a regular expression."""
        return bool(self._expression_readers)

    def readers_of(self, expression: str) -> int:
        """How many members subscribe to this regular expression."""
        return self._expression_readers[expression]

    def topics(self) -> set[str]:
        """The names of all topics that members read, by name or by expression."""
        names = super().topics()
        for expression in self._expression_readers:
            names.update(self.matched_by(expression))
        return names

    def topics_of(self, member: ConsumerMember) -> set[str]:
        """The names of the topics that the member reads. An expression that was not matched yet matches none."""
        return {*member.subscription.topics, *self.matched_by(member.regex)}

    def matched_by(self, expression: str) -> tuple[str, ...]:
        """The topics that the expression was found to match; none if it was not matched yet."""
        found = self.expressions.get(expression)
        return () if found is None else found.topics

    def preferred_assignor(self, default: str) -> str:
        """The one that most members ask for."""
        wishes = Counter(m.subscription.assignor for m in self.members.values() if m.subscription.assignor)
        return max(sorted(wishes), key=wishes.__getitem__) if wishes else default

    @property
    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.is_classic]

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether a partition that the member still misses of its target is not given up by its owner yet."""
        return any(
            number not in member.assigned.get(topic_id, ()) and self.is_owned(topic_id, number)
            for topic_id, number in pairs(self.targets.get(member.member_id, {}))
        )

    # Questions of the coordinator -------------------------------------------------------------------------------

    @property
    def may_be_deleted(self) -> bool:
        return not self.members

    def check_commit(self, request: CommitRequest) -> None:
        if request.generation_id < 0 and not self.members:
            return  # an administrator, or a consumer that assigns itself
        if request.producer is None:
            self._check_member_commit(request)
        elif request.generation_id >= 0 or request.member_id or request.group_instance_id is not None:
            # Old versions of TxnOffsetCommit do not say who commits; all of them know the errors of classic groups.
            try:
                self._check_member_commit(request)
            except StaleMemberEpoch as error:
                raise IllegalGeneration(str(error)) from error

    def _check_member_commit(self, request: CommitRequest) -> None:
        member = self.check_member(request.member_id)
        if not member.is_classic and request.producer is None and not request.reports_unknown_group:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members of the consumer protocol."
            )
        if member.is_classic or request.generation_id > member.epoch:
            self._check_epoch(member, request.generation_id)
        elif request.generation_id < member.epoch:
            self._check_owned_before(member, request)

    def _check_owned_before(self, member: ConsumerMember, request: CommitRequest) -> None:
        """The member does not know its newest epoch yet, but what it had before is still its own (KIP-1251)."""
        for offset in request.offsets:
            since = member.owned_since(offset.topic_id, offset.partition)
            if since is None or since > request.generation_id:
                self._check_epoch(member, request.generation_id)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse to fetch offsets for a member that is not in the group, or not in this epoch.

        Raises UnknownMemberId, StaleMemberEpoch.
        """
        if member_id is not None or member_epoch >= 0:
            self._check_epoch(self.check_member(member_id or ""), member_epoch)

    def _check_epoch(self, member: ConsumerMember, received: int) -> None:
        if received != member.epoch:
            text = f"Member {member.member_id} of group {self.group_id} is in epoch {member.epoch}, not in {received}."
            raise IllegalGeneration(text) if member.is_classic else StaleMemberEpoch(text)

    def check_offset_delete(self) -> None:
        """Allowed at any time: topics that members read are refused one by one."""

    def is_subscribed_to(self, topic: str) -> bool:
        return super().is_subscribed_to(topic) or any(topic in self.matched_by(one) for one in self._expression_readers)

    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None:
        if offset.expire_timestamp != NO_TIMESTAMP:
            return offset.expire_timestamp
        return offset.commit_timestamp + retention_ms
