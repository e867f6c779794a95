"""The records of one decision, applied to the group as they are made, so that each step sees the one before."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from strandline.coordinators.groups.modern.group import ModernGroup, ModernMember
from strandline.coordinators.groups.modern.partitions import Partitions, in_order
from strandline.coordinators.groups.modern.records import (
    GroupEpochValue,
    ModernRecordKey,
    TargetEpochValue,
    TargetValue,
    write_record_key,
)
from strandline.coordinators.runtime import KeyValue

G = TypeVar("G", bound=ModernGroup[Any])


class GroupChanges(Generic[G]):
    """A decision in the making. As a block, it leaves the group as it was if it is refused half-way."""

    def __init__(self, group: G) -> None:
        self.group = group
        self._made: list[_Change] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.take_back()

    def take_back(self) -> None:
        for change in reversed(self._made):
            self.group.apply(change.key, change.before)
        self._made.clear()
        self.group.checked_image = None

    @property
    def is_any(self) -> bool:
        """Whether anything changes."""
        return bool(self._made)

    @property
    def records(self) -> list[KeyValue]:
        """What has to be written, in order."""
        return [self.group.record(change.key, change.value) for change in self._made]

    def put(self, kind: IntEnum, name: str, value: Any | None) -> None:
        key = self.group.key(kind, name)
        write_record_key(key)  # refuses a name that is too long before anything has changed
        self._made.append(_Change(key, value, self.group.value_of(key)))
        self.group.apply(key, value)

    # Shorthands -------------------------------------------------------------------------------------------------

    def put_member(self, member: ModernMember) -> None:
        self.put(self.group.types.member, member.member_id, member.subscription)

    def put_assignment(self, member: ModernMember) -> None:
        self.put(self.group.types.assignment, member.member_id, member.assignment_value())

    def put_target(self, member_id: str, partitions: Partitions) -> None:
        self.put(self.group.types.target, member_id, TargetValue(partitions=in_order(partitions)))

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self.put(self.group.types.target_epoch, "", TargetEpochValue(epoch=epoch, timestamp_ms=timestamp_ms))

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.put(self.group.types.group_epoch, "", GroupEpochValue(epoch=epoch, metadata_hash=metadata_hash))

    def remove_member(self, member_id: str) -> None:
        for kind in (self.group.types.assignment, self.group.types.target, self.group.types.member):
            self.put(kind, member_id, None)


@dataclass(frozen=True, slots=True)
class _Change:
    key: ModernRecordKey
    value: Any | None
    before: Any | None = field(repr=False)
