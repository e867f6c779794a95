"""A consumer group: its members, its target assignment, and who owns what. It changes by records only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from uuid import UUID

from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.partitions import Partitions, pairs, partition_values, read_partitions
from strandline.coordinators.groups.consumer.schemas import (
    ConsumerRecordKey,
    ConsumerRecordType,
    ConsumerRecordValue,
    CurrentAssignmentValue,
    GroupEpochValue,
    RegularExpressionValue,
    SubscriptionValue,
    TargetEpochValue,
    TargetValue,
    write_consumer_key,
)
from strandline.coordinators.groups.schemas import OffsetValue
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.subscription import CONSUMER_PROTOCOL
from strandline.coordinators.groups.values import CommitRequest, DescribedGroup, ListedGroup
from strandline.coordinators.runtime import KeyValue
from strandline.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from strandline.metadata.image import MetadataImage
from strandline.model import NO_TIMESTAMP

FIRST_EPOCH = 1
"""Of a group and of its target before any record says otherwise."""


class ConsumerGroup:
    """What the records of one group say, with indexes over it.

    `apply` takes any record at any time and never refuses: a log that is cut or was written by another broker is read
    as far as it makes sense. `value_of` is its inverse: the value that the log has to have for a key.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.expressions: dict[str, RegularExpressionValue] = {}
        """Regular expressions that were matched against the topics."""
        self.instances: dict[str, str] = {}
        """Member id by group instance id."""
        self._owners: dict[tuple[UUID, int], str] = {}
        self._topic_readers: Counter[str] = Counter()
        self._expression_readers: Counter[str] = Counter()
        self._has_epoch = self._has_target_epoch = False
        # Not in the log:
        self.checked_image: MetadataImage | None = None
        """The image that the hash of the topics was compared with last."""
        self.matched_topics: frozenset[str] | None = None
        """The topics that the expressions were matched against last."""

    # Records ----------------------------------------------------------------------------------------------------

    def key(self, kind: ConsumerRecordType, name: str = "") -> ConsumerRecordKey:
        return ConsumerRecordKey(kind, self.group_id, name)

    def keys(self) -> Iterator[ConsumerRecordKey]:
        """The keys of all records of the group, in the order in which Kafka deletes them."""
        for kind, names in (
            (ConsumerRecordType.CURRENT_ASSIGNMENT, self.members),
            (ConsumerRecordType.TARGET, self.members),
            (ConsumerRecordType.TARGET_EPOCH, ("",)),
            (ConsumerRecordType.MEMBER, self.members),
            (ConsumerRecordType.REGULAR_EXPRESSION, self.expressions),
            (ConsumerRecordType.PARTITION_METADATA, ("",)),
            (ConsumerRecordType.GROUP_EPOCH, ("",)),
        ):
            for name in names:
                yield self.key(kind, name)

    def apply(self, key: ConsumerRecordKey, value: ConsumerRecordValue | None) -> None:
        """Change the group as this record says. A value of None is a tombstone."""
        match key.kind:
            case ConsumerRecordType.GROUP_EPOCH:
                self._has_epoch = isinstance(value, GroupEpochValue)
                found = value if isinstance(value, GroupEpochValue) else GroupEpochValue(epoch=FIRST_EPOCH)
                self.epoch, self.metadata_hash = found.epoch, found.metadata_hash
            case ConsumerRecordType.TARGET_EPOCH:
                self._has_target_epoch = isinstance(value, TargetEpochValue)
                target = value if isinstance(value, TargetEpochValue) else TargetEpochValue(epoch=FIRST_EPOCH)
                self.target_epoch, self.target_timestamp_ms = target.epoch, target.timestamp_ms
            case ConsumerRecordType.TARGET:
                if isinstance(value, TargetValue):
                    self.targets[key.name] = read_partitions(value.partitions)
                else:
                    self.targets.pop(key.name, None)
            case ConsumerRecordType.REGULAR_EXPRESSION:
                if isinstance(value, RegularExpressionValue):
                    self.expressions[key.name] = value
                else:
                    self.expressions.pop(key.name, None)
            case ConsumerRecordType.MEMBER:
                self._apply_member(key.name, value if isinstance(value, SubscriptionValue) else None)
            case ConsumerRecordType.CURRENT_ASSIGNMENT:
                self._apply_assignment(key.name, value if isinstance(value, CurrentAssignmentValue) else None)
            case ConsumerRecordType.PARTITION_METADATA:
                pass  # of earlier versions; says nothing that the metadata does not say

    def value_of(self, key: ConsumerRecordKey) -> ConsumerRecordValue | None:
        """The value of this key in the log if the log is up to date; None: a tombstone, or nothing."""
        match key.kind:
            case ConsumerRecordType.GROUP_EPOCH:
                value = GroupEpochValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
                return value if self._has_epoch else None
            case ConsumerRecordType.TARGET_EPOCH:
                target = TargetEpochValue(epoch=self.target_epoch, timestamp_ms=self.target_timestamp_ms)
                return target if self._has_target_epoch else None
            case ConsumerRecordType.TARGET:
                partitions = self.targets.get(key.name)
                return None if partitions is None else TargetValue(partitions=partition_values(partitions))
            case ConsumerRecordType.REGULAR_EXPRESSION:
                return self.expressions.get(key.name)
            case ConsumerRecordType.MEMBER:
                return self.members[key.name].subscription if key.name in self.members else None
            case ConsumerRecordType.CURRENT_ASSIGNMENT:
                return self.members[key.name].assignment_value() if key.name in self.members else None
            case ConsumerRecordType.PARTITION_METADATA:
                return None

    def _apply_member(self, member_id: str, value: SubscriptionValue | None) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._forget(before)
        if value is None:
            self.members.pop(member_id, None)
            return
        self._remember((before or ConsumerMember(member_id=member_id)).subscribed(value))

    def _apply_assignment(self, member_id: str, value: CurrentAssignmentValue | None) -> None:
        before = self.members.get(member_id)
        if before is None and value is None:
            return
        if before is not None:
            self._forget(before)
        member = before or ConsumerMember(member_id=member_id)
        self._remember(member.without_assignment() if value is None else member.with_assignment(value))

    def _forget(self, member: ConsumerMember) -> None:
        """Take the member out of the indexes."""
        for owned in (member.assigned, member.pending_revocation):
            for partition in pairs(owned):
                if self._owners.get(partition) == member.member_id:
                    del self._owners[partition]
        for readers, names in self._subscriptions_of(member):
            for name in names:
                readers[name] -= 1
                if readers[name] == 0:
                    del readers[name]
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.member_id:
            del self.instances[member.instance_id]

    def _remember(self, member: ConsumerMember) -> None:
        self.members[member.member_id] = member
        for owned in (member.assigned, member.pending_revocation):
            for partition in pairs(owned):
                self._owners[partition] = member.member_id
        for readers, names in self._subscriptions_of(member):
            readers.update(names)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id

    def _subscriptions_of(self, member: ConsumerMember) -> Iterator[tuple[Counter[str], Sequence[str]]]:
        yield self._topic_readers, member.subscription.topics
        yield self._expression_readers, [member.regex] if member.regex else []

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

    def readers_of(self, expression: str) -> int:
        """How many members subscribe to this regular expression."""
        return self._expression_readers[expression]

    def topics(self) -> set[str]:
        """The names of all topics that members read, by name or by expression."""
        names = set(self._topic_readers)
        for expression in self._expression_readers:
            names.update(self._matched(expression))
        return names

    def topics_of(self, member: ConsumerMember) -> set[str]:
        """The names of the topics that the member reads. An expression that was not matched yet matches none."""
        return {*member.subscription.topics, *self._matched(member.regex)}

    def _matched(self, expression: str) -> tuple[str, ...]:
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
        """Whether a partition that the member still misses of its target is owned by somebody."""
        return any(
            number not in member.assigned.get(topic_id, ()) and self.is_owned(topic_id, number)
            for topic_id, number in pairs(self.targets.get(member.member_id, {}))
        )

    def check_member(self, member_id: str) -> ConsumerMember:
        """Raises UnknownMemberId."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    # Questions of the coordinator -------------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.CONSUMER

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
        """Refuse a fetch of offsets by somebody who is not a member now. Raises UnknownMemberId, StaleMemberEpoch."""
        if member_id is not None or member_epoch >= 0:
            self._check_epoch(self.check_member(member_id or ""), member_epoch)

    def _check_epoch(self, member: ConsumerMember, received: int) -> None:
        if received != member.epoch:
            text = f"Member {member.member_id} of group {self.group_id} is in epoch {member.epoch}, not in {received}."
            raise IllegalGeneration(text) if member.is_classic else StaleMemberEpoch(text)

    def check_offset_delete(self) -> None:
        """Allowed at any time: topics that members read are refused one by one."""

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"Group {self.group_id} has {len(self.members)} members; stop them first.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self._topic_readers or any(topic in self._matched(one) for one in self._expression_readers)

    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None:
        if offset.expire_timestamp != NO_TIMESTAMP:
            return offset.expire_timestamp
        return offset.commit_timestamp + retention_ms

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id, protocol_type=CONSUMER_PROTOCOL, state=self.state, group_type=self.group_type
        )

    def described(self) -> DescribedGroup:
        """DescribeGroups is for classic groups."""
        error = GroupIdNotFound(f"Group {self.group_id} is not a classic group.")
        return DescribedGroup(group_id=self.group_id, error=error)

    def tombstones(self) -> list[KeyValue]:
        return [(write_consumer_key(key), None) for key in self.keys()]
