"""A share group: its members, its target assignment, and where it has state. It changes by records only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from strandline.coordinators.groups.schemas import OffsetValue
from strandline.coordinators.groups.share.assignor import SIMPLE_ASSIGNOR
from strandline.coordinators.groups.share.member import ShareMember
from strandline.coordinators.groups.share.partitions import SharePartitions
from strandline.coordinators.groups.share.schemas import (
    ShareAssignmentValue,
    ShareGroupEpochValue,
    ShareMemberValue,
    ShareRecordKey,
    ShareRecordType,
    ShareRecordValue,
    ShareStatesValue,
    ShareTargetEpochValue,
    ShareTargetValue,
    write_share_key,
)
from strandline.coordinators.groups.share.values import DescribedShareGroup, DescribedShareMember
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import CommitRequest, DescribedGroup, ListedGroup
from strandline.coordinators.runtime import KeyValue
from strandline.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from strandline.metadata.image import MetadataImage

SHARE_PROTOCOL: Final = "share"
_FIRST_EPOCH: Final = 1
_NO_STATES: Final = ShareStatesValue()


class ShareGroup:
    """What the records of one group say, with indexes over it.

    `apply` takes any record at any time and never refuses: a log that is cut or was written by another broker is read
    as far as it makes sense. `value_of` is its inverse: the value that the log has to have for a key.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = self.target_epoch = _FIRST_EPOCH
        self.metadata_hash = self.target_timestamp_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, SharePartitions] = {}
        self.states = _NO_STATES
        self._readers: Counter[str] = Counter()
        self._has_epoch = self._has_target_epoch = self._has_states = False
        # Not in the log:
        self.checked_image: MetadataImage | None = None
        """The image that the hash of the topics was compared with last."""
        self.begun_at: dict[UUID, int] = {}
        """When the state of a topic was last begun to be created by this broker, in milliseconds."""

    # Records ----------------------------------------------------------------------------------------------------

    def key(self, kind: ShareRecordType, member_id: str = "") -> ShareRecordKey:
        return ShareRecordKey(kind, self.group_id, member_id)

    def keys(self) -> Iterator[ShareRecordKey]:
        """The keys of all records of the group, in the order in which Kafka deletes them."""
        for kind, of_members in (
            (ShareRecordType.ASSIGNMENT, True),
            (ShareRecordType.TARGET, True),
            (ShareRecordType.TARGET_EPOCH, False),
            (ShareRecordType.MEMBER, True),
            (ShareRecordType.STATES, False),
            (ShareRecordType.GROUP_EPOCH, False),
        ):
            for member_id in self.members if of_members else ("",):
                yield self.key(kind, member_id)

    def apply(self, key: ShareRecordKey, value: ShareRecordValue | None) -> None:
        """Change the group as this record says. A value of None is a tombstone."""
        match key.kind:
            case ShareRecordType.GROUP_EPOCH:
                self._has_epoch = isinstance(value, ShareGroupEpochValue)
                epoch = value if isinstance(value, ShareGroupEpochValue) else ShareGroupEpochValue(epoch=_FIRST_EPOCH)
                self.epoch, self.metadata_hash = epoch.epoch, epoch.metadata_hash
            case ShareRecordType.TARGET_EPOCH:
                self._has_target_epoch = isinstance(value, ShareTargetEpochValue)
                at = value if isinstance(value, ShareTargetEpochValue) else ShareTargetEpochValue(epoch=_FIRST_EPOCH)
                self.target_epoch, self.target_timestamp_ms = at.epoch, at.timestamp_ms
            case ShareRecordType.TARGET:
                if isinstance(value, ShareTargetValue):
                    self.targets[key.member_id] = value.partitions
                else:
                    self.targets.pop(key.member_id, None)
            case ShareRecordType.STATES:
                self._has_states = isinstance(value, ShareStatesValue)
                self.states = value if isinstance(value, ShareStatesValue) else _NO_STATES
            case ShareRecordType.MEMBER:
                self._apply_member(key.member_id, value if isinstance(value, ShareMemberValue) else None)
            case ShareRecordType.ASSIGNMENT:
                self._apply_assignment(key.member_id, value if isinstance(value, ShareAssignmentValue) else None)

    def value_of(self, key: ShareRecordKey) -> ShareRecordValue | None:
        """The value of this key in the log if the log is up to date; None: a tombstone, or nothing."""
        member = self.members.get(key.member_id)
        match key.kind:
            case ShareRecordType.GROUP_EPOCH:
                epoch = ShareGroupEpochValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
                return epoch if self._has_epoch else None
            case ShareRecordType.TARGET_EPOCH:
                target = ShareTargetEpochValue(epoch=self.target_epoch, timestamp_ms=self.target_timestamp_ms)
                return target if self._has_target_epoch else None
            case ShareRecordType.TARGET:
                partitions = self.targets.get(key.member_id)
                return None if partitions is None else ShareTargetValue(partitions=partitions)
            case ShareRecordType.STATES:
                return self.states if self._has_states else None
            case ShareRecordType.MEMBER:
                return None if member is None else member.subscription
            case ShareRecordType.ASSIGNMENT:
                return member.assignment_value() if member is not None and member.has_assignment else None

    def _apply_member(self, member_id: str, value: ShareMemberValue | None) -> None:
        before = self.members.pop(member_id, None)
        if before is not None:
            self._readers.subtract(before.subscription.topics)
            self._readers += Counter()  # drops those without readers
        if value is not None:
            self.members[member_id] = (before or ShareMember(member_id=member_id)).subscribed(value)
            self._readers.update(value.topics)

    def _apply_assignment(self, member_id: str, value: ShareAssignmentValue | None) -> None:
        before = self.members.get(member_id)
        if before is not None or value is not None:
            self.members[member_id] = (before or ShareMember(member_id=member_id)).told(value)

    # Questions of the protocol ----------------------------------------------------------------------------------

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that members subscribe to."""
        return frozenset(self._readers)

    @property
    def assignable(self) -> SharePartitions:
        """The partitions that have state in the share coordinator."""
        return {topic_id: topic.partitions for topic_id, topic in self.states.initialized.items() if topic.partitions}

    def check_member(self, member_id: str) -> ShareMember:
        """Raises UnknownMemberId."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def described_share_group(self) -> DescribedShareGroup:
        return DescribedShareGroup(
            group_id=self.group_id,
            state=self.state,
            epoch=self.epoch,
            target_epoch=self.target_epoch,
            assignor=SIMPLE_ASSIGNOR,
            members=tuple(
                DescribedShareMember(
                    member_id=member.member_id,
                    rack_id=member.subscription.rack_id,
                    member_epoch=member.epoch,
                    client_id=member.subscription.client_id,
                    client_host=member.subscription.client_host,
                    topics=member.subscription.topics,
                    assigned=member.assigned,
                )
                for member in self.members.values()
            ),
        )

    # Questions of the coordinator -------------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.SHARE

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def may_be_deleted(self) -> bool:
        """Share groups stay until somebody deletes them."""
        return False

    def check_commit(self, request: CommitRequest) -> None:
        raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def check_offset_delete(self) -> None:
        raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"Group {self.group_id} has {len(self.members)} members; stop them first.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self._readers

    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None:
        return None

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id, protocol_type=SHARE_PROTOCOL, state=self.state, group_type=self.group_type
        )

    def described(self) -> DescribedGroup:
        """DescribeGroups is for classic groups."""
        error = GroupIdNotFound(f"Group {self.group_id} is not a classic group.")
        return DescribedGroup(group_id=self.group_id, error=error)

    def tombstones(self) -> list[KeyValue]:
        return [(write_share_key(key), None) for key in self.keys()]
