"""A member of a share group: what it said of itself, and what it was told to read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from strandline.coordinators.groups.modern.group import JOINING_EPOCH
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.share.schemas import ShareAssignmentValue, ShareMemberValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    """A value: the group holds the newest one."""

    member_id: str
    subscription: ShareMemberValue = field(default_factory=ShareMemberValue)
    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    assigned: Partitions = field(default_factory=dict)

    def subscribed(self, subscription: ShareMemberValue) -> ShareMember:
        return replace(self, subscription=subscription)

    def told(self, assignment: ShareAssignmentValue | None) -> ShareMember:
        """The member with this assignment; None: with none, as before its first one."""
        if assignment is None:
            return ShareMember(member_id=self.member_id, subscription=self.subscription)
        return replace(
            self,
            epoch=assignment.member_epoch,
            previous_epoch=assignment.previous_epoch,
            assigned=assignment.partitions,
        )

    def assignment_value(self) -> ShareAssignmentValue | None:
        """None if the log has no assignment of the member."""
        if self.epoch == JOINING_EPOCH:
            return None
        return ShareAssignmentValue(
            member_epoch=self.epoch, previous_epoch=self.previous_epoch, partitions=self.assigned
        )
