"""A member of a share group: what it said of itself, and what it was told to read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from strandline.coordinators.groups.share.partitions import NOTHING_SHARED, SharePartitions
from strandline.coordinators.groups.share.schemas import ShareAssignmentValue, ShareMemberValue

SHARE_JOINING_EPOCH: Final = 0
SHARE_LEAVING_EPOCH: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    """A value: the group holds the newest one."""

    member_id: str
    subscription: ShareMemberValue = field(default_factory=ShareMemberValue)
    epoch: int = SHARE_JOINING_EPOCH
    previous_epoch: int = -1
    assigned: SharePartitions = field(default_factory=dict)

    def subscribed(self, subscription: ShareMemberValue) -> ShareMember:
        return replace(self, subscription=subscription)

    def told(self, value: ShareAssignmentValue | None) -> ShareMember:
        """The member with this assignment; None: with none, as before its first one."""
        if value is None:
            return ShareMember(member_id=self.member_id, subscription=self.subscription)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_epoch,
            assigned=value.partitions or NOTHING_SHARED,
        )

    @property
    def has_assignment(self) -> bool:
        """Whether the log has an assignment of the member."""
        return self.epoch != SHARE_JOINING_EPOCH

    def assignment_value(self) -> ShareAssignmentValue:
        return ShareAssignmentValue(
            member_epoch=self.epoch, previous_epoch=self.previous_epoch, partitions=self.assigned
        )
