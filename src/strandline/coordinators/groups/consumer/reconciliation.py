"""Moving one member from what it owns towards its target: it gives up first, then takes what others have given up.

Pure functions. A member advances to the target epoch when it owns nothing that is not in its target. Partitions that
another member still owns are waited for in UNRELEASED_PARTITIONS. While a member revokes it keeps its epoch, so that it
can still commit offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from uuid import UUID

from strandline.coordinators.groups.consumer.member import ConsumerMember, ReconciliationState
from strandline.coordinators.groups.consumer.partitions import (
    NO_EPOCHS,
    PartitionEpochs,
    have_common,
    merged,
)
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.errors import FencedMemberEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a member goes. `subscribed` are the ids of the topics that it subscribes to now."""

    epoch: int
    partitions: Partitions
    subscribed: Container[UUID]


def reconcile(
    member: ConsumerMember,
    target: Target,
    *,
    owned: Partitions | None,
    is_owned_by_anyone: Callable[[UUID, int], bool],
    subscription_changed: bool = False,
) -> ConsumerMember:
    """The next state of the member, or the same one if it cannot move. Raises FencedMemberEpoch.

    `owned` is what the client says it owns; None if this request does not say it.
    """
    step = _Step(member, target, owned, is_owned_by_anyone)
    match member.state:
        case ReconciliationState.STABLE:
            if member.epoch != target.epoch:
                return step.advanced(member.epoch)
            return step.unsubscribed() if subscription_changed else member
        case ReconciliationState.UNREVOKED_PARTITIONS:
            if step.still_owns(member.pending_revocation):
                return step.unsubscribed() if subscription_changed else member
            return step.advanced(member.epoch)  # while there is more to revoke, its epoch stays
        case ReconciliationState.UNRELEASED_PARTITIONS:
            return step.advanced(member.epoch)
        case ReconciliationState.UNKNOWN:
            if owned is None or owned:
                raise FencedMemberEpoch(
                    f"The state of member {member.member_id} is not known to this broker. The member must abandon all "
                    "its partitions and rejoin."
                )
            return step.advanced(target.epoch)


@dataclass(frozen=True, slots=True)
class _Step:
    member: ConsumerMember
    target: Target
    owned: Partitions | None
    is_owned_by_anyone: Callable[[UUID, int], bool]

    def still_owns(self, revoked: PartitionEpochs) -> bool:
        """A client that does not say what it owns may own all of it."""
        return self.owned is None or have_common(self.owned, revoked)

    def unsubscribed(self) -> ConsumerMember:
        """Take away the topics that the member no longer subscribes to; nothing else changes yet."""
        gone = {t: p for t, p in self.member.assigned.items() if t not in self.target.subscribed}
        if not gone:
            return self.member
        kept = {t: p for t, p in self.member.assigned.items() if t not in gone}
        revoked = merged(self.member.pending_revocation, gone)
        if self.still_owns(revoked):
            unrevoked = ReconciliationState.UNREVOKED_PARTITIONS
            return replace(self.member, state=unrevoked, assigned=kept, pending_revocation=revoked)
        return replace(self.member, assigned=kept)

    def advanced(self, epoch: int) -> ConsumerMember:
        """Compare what the member has with its target. `epoch` is the one it has while it revokes."""
        kept: dict[UUID, dict[int, int]] = {}
        revoked: dict[UUID, dict[int, int]] = {}
        for topic_id, partitions in self.member.assigned.items():
            wanted = self._target_of(topic_id)
            for number, since in partitions.items():
                (kept if number in wanted else revoked).setdefault(topic_id, {})[number] = since
        if revoked and self.still_owns(revoked):
            return replace(
                self.member.moved_to(epoch),
                state=ReconciliationState.UNREVOKED_PARTITIONS,
                assigned=kept,
                pending_revocation=revoked,
            )
        is_waiting = False
        for topic_id in self.target.partitions:
            for number in self._target_of(topic_id) - kept.get(topic_id, {}).keys():
                if self._is_free(topic_id, number):
                    kept.setdefault(topic_id, {})[number] = self.target.epoch
                else:
                    is_waiting = True
        return replace(
            self.member.moved_to(self.target.epoch),
            state=ReconciliationState.UNRELEASED_PARTITIONS if is_waiting else ReconciliationState.STABLE,
            assigned=kept,
            pending_revocation=NO_EPOCHS,
        )

    def _target_of(self, topic_id: UUID) -> frozenset[int]:
        if topic_id not in self.target.subscribed:
            return frozenset()
        return self.target.partitions.get(topic_id, frozenset())

    def _is_free(self, topic_id: UUID, number: int) -> bool:
        # What this member itself has just given up counts as owned until this step is written.
        is_mine = number in self.member.pending_revocation.get(topic_id, ())
        return is_mine or not self.is_owned_by_anyone(topic_id, number)
