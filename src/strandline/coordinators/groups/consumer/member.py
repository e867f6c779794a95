"""A member of a consumer group: what it subscribes to, its epoch, and what it owns. An immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final
from uuid import UUID

from strandline.coordinators.groups.consumer.partitions import (
    PartitionEpochs,
    epoch_values,
    merged,
    read_epochs,
)
from strandline.coordinators.groups.consumer.schemas import CurrentAssignmentValue, SubscriptionValue
from strandline.coordinators.groups.modern.group import JOINING_EPOCH, LEAVING_EPOCH

STATIC_LEAVING_EPOCH: Final = -2
"""A static member left and is expected back: it keeps its partitions until its session ends."""


class ReconciliationState(IntEnum):
    """How far a member is on its way to the target. The numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions first."""
    UNRELEASED_PARTITIONS = 2
    """Partitions of its target are still owned by others."""
    UNKNOWN = 127
    """A newer broker wrote a state that this one does not have: the member has to start over."""


_STATES: Final[Mapping[int, ReconciliationState]] = {state.value: state for state in ReconciliationState}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """`previous_epoch` is the one before the last change: an answer with the new one may be lost."""

    member_id: str
    subscription: SubscriptionValue = field(default_factory=SubscriptionValue)
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: ReconciliationState = ReconciliationState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)

    @property
    def instance_id(self) -> str | None:
        return self.subscription.instance_id

    @property
    def regex(self) -> str:
        """Empty if the member has no regular expression."""
        return self.subscription.regex or ""

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.subscription.classic is not None

    @property
    def has_left_for_now(self) -> bool:
        return self.epoch == STATIC_LEAVING_EPOCH

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is ReconciliationState.STABLE and self.epoch == target_epoch

    @property
    def owned(self) -> PartitionEpochs:
        """What it has, also what it was told to give up and may still be reading."""
        return merged(self.assigned, self.pending_revocation) if self.pending_revocation else self.assigned

    def owned_since(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch in which the member was assigned the partition; None if it does not own it."""
        for owned in (self.assigned, self.pending_revocation):
            if partition in owned.get(topic_id, ()):
                return owned[topic_id][partition]
        return None

    def moved_to(self, epoch: int) -> ConsumerMember:
        return replace(self, epoch=epoch, previous_epoch=self.epoch)

    def subscribed(self, subscription: SubscriptionValue) -> ConsumerMember:
        return replace(self, subscription=subscription)

    def told(self, assignment: CurrentAssignmentValue | None) -> ConsumerMember:
        """The member as this record describes it; if the record is deleted, it has to join again."""
        if assignment is None:
            return ConsumerMember(
                member_id=self.member_id,
                subscription=self.subscription,
                epoch=LEAVING_EPOCH,
                previous_epoch=LEAVING_EPOCH,
            )
        epoch = assignment.member_epoch
        return replace(
            self,
            epoch=epoch,
            previous_epoch=assignment.previous_epoch,
            state=_STATES.get(assignment.state, ReconciliationState.UNKNOWN),
            assigned=read_epochs(assignment.assigned, epoch),
            pending_revocation=read_epochs(assignment.pending_revocation, epoch),
        )

    def assignment_value(self) -> CurrentAssignmentValue:
        return CurrentAssignmentValue(
            member_epoch=self.epoch,
            previous_epoch=self.previous_epoch,
            state=self.state,
            assigned=epoch_values(self.assigned),
            pending_revocation=epoch_values(self.pending_revocation),
        )
