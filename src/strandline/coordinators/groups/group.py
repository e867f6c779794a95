"""What the coordinator asks of a group, whatever its protocol."""

from __future__ import annotations

from typing import Protocol

from strandline.coordinators.groups.schemas import OffsetValue
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import CommitRequest, DescribedGroup, ListedGroup
from strandline.coordinators.runtime import KeyValue


class Group(Protocol):
    """A group of one kind: a classic group, a consumer group of KIP-848, or a share group of KIP-932.

    All methods are synchronous and run on the event loop. `check_*` raise the error the client gets.
    """

    @property
    def group_id(self) -> str: ...

    @property
    def group_type(self) -> GroupType: ...

    @property
    def state(self) -> GroupState: ...

    @property
    def may_be_deleted(self) -> bool:
        """Whether an expiration sweep may remove the group once its offsets are gone."""

    def check_commit(self, request: CommitRequest) -> None:
        """Refuse an offset commit that the group's protocol does not allow now."""

    def check_offset_delete(self) -> None:
        """Refuse the deletion of offsets while the group may use them."""

    def check_delete(self) -> None:
        """Refuse the deletion of a group that has members."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of this topic are in use; if unknown, a consumer group counts as subscribed."""

    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None:
        """The time from which an offset of an unsubscribed topic may be dropped; None: not in this state."""

    def tombstones(self) -> list[KeyValue]:
        """The records that delete the group; its offsets have their own."""

    def listed(self) -> ListedGroup: ...

    def described(self) -> DescribedGroup: ...
