"""A share group: its members, its target assignment, and where it has state. It changes by records only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from strandline.coordinators.groups.modern.group import ModernGroup, ModernRecordTypes
from strandline.coordinators.groups.modern.partitions import NO_PARTITIONS, Partitions, united
from strandline.coordinators.groups.modern.records import ModernRecordKey
from strandline.coordinators.groups.modern.values import DescribedModernGroup
from strandline.coordinators.groups.schemas import OffsetValue
from strandline.coordinators.groups.share.assignor import SIMPLE_ASSIGNOR
from strandline.coordinators.groups.share.member import ShareMember
from strandline.coordinators.groups.share.schemas import (
    ShareRecordKey,
    ShareRecordType,
    ShareRecordValue,
    ShareStatesValue,
    read_share_value,
    write_share_value,
)
from strandline.coordinators.groups.share.values import DescribedShareGroup, DescribedShareMember
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import CommitRequest
from strandline.errors import GroupIdNotFound

_NO_STATES: Final = ShareStatesValue()


class ShareGroup(ModernGroup[ShareMember]):
    """Its own: where it has state in the share coordinator. Only those partitions are assigned."""

    group_type = GroupType.SHARE
    protocol_type = "share"
    key_type = ShareRecordKey
    types = ModernRecordTypes(
        group_epoch=ShareRecordType.GROUP_EPOCH,
        target_epoch=ShareRecordType.TARGET_EPOCH,
        target=ShareRecordType.TARGET,
        member=ShareRecordType.MEMBER,
        assignment=ShareRecordType.ASSIGNMENT,
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.states = _NO_STATES
        self._has_states = False
        # Not in the log:
        self.begun_at: dict[UUID, int] = {}
        """When the state of a topic was last begun to be created by this broker, in milliseconds."""
        self._targeted: tuple[int, Partitions] = (0, NO_PARTITIONS)

    # Records ----------------------------------------------------------------------------------------------------

    def new_member(self, member_id: str) -> ShareMember:
        return ShareMember(member_id=member_id)

    def other_keys(self) -> Iterator[ModernRecordKey]:
        yield self.key(ShareRecordType.STATES)

    def apply_other(self, key: ModernRecordKey, value: Any | None) -> None:
        self._has_states = value is not None
        self.states = value or _NO_STATES

    def other_value_of(self, key: ModernRecordKey) -> ShareStatesValue | None:
        return self.states if self._has_states else None

    @staticmethod
    def write_value(value: ShareRecordValue) -> bytes:
        return write_share_value(value)

    @staticmethod
    def read_value(kind: ShareRecordType, data: bytes) -> ShareRecordValue:
        return read_share_value(kind, data)

    # Questions of the protocol ----------------------------------------------------------------------------------

    @property
    def targeted(self) -> Partitions:
        """The partitions that are in the target of any member. Every heartbeat asks, and it seldom changes."""
        if self._targeted[0] != self.target_changes:
            self._targeted = (self.target_changes, united(*self.targets.values()))
        return self._targeted[1]

    @property
    def assignable(self) -> Partitions:
        """The partitions that have state in the share coordinator."""
        return {topic_id: topic.partitions for topic_id, topic in self.states.initialized.items() if topic.partitions}

    def described_share_group(self) -> DescribedShareGroup:
        return DescribedModernGroup(
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
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def may_be_deleted(self) -> bool:
        """Share groups stay until an administrator deletes them."""
        return False

    def check_commit(self, request: CommitRequest) -> None:
        raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def check_offset_delete(self) -> None:
        raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None:
        return None
