"""A modern group: its epoch, its members and its target assignment. It changes by records only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.records import (
    GroupEpochValue,
    ModernRecordKey,
    TargetEpochValue,
    TargetValue,
    write_record_key,
)
from strandline.coordinators.groups.schemas import OffsetValue
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import CommitRequest, DescribedGroup, ListedGroup
from strandline.coordinators.runtime import KeyValue
from strandline.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from strandline.metadata import MetadataImage

FIRST_EPOCH: Final = 1
"""Of a group and of its target before any record says otherwise."""
JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1


class ModernSubscription(Protocol):
    """What a member said of itself, as its record has it."""

    @property
    def topics(self) -> Sequence[str]: ...


class ModernMember(Protocol):
    """An immutable value: the group holds the newest one."""

    @property
    def member_id(self) -> str: ...

    @property
    def subscription(self) -> ModernSubscription: ...

    @property
    def epoch(self) -> int: ...

    def subscribed(self, subscription: Any) -> Self: ...

    def told(self, assignment: Any | None) -> Self:
        """The member with the assignment of this record; None: with none, since the record was deleted."""

    def assignment_value(self) -> Any | None:
        """The inverse of `told`; None if the log has no assignment of the member."""


M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernRecordTypes:
    """The record types that all kinds of groups have, under numbers of their own."""

    group_epoch: IntEnum
    target_epoch: IntEnum
    target: IntEnum
    member: IntEnum
    assignment: IntEnum


class ModernGroup(ABC, Generic[M]):
    """What the records of one group say, with indexes over it.

    `apply` takes any record at any time and never refuses: a log that is cut or was written by another broker is read
    as far as it makes sense. `value_of` is its inverse: the value that the log has to have for a key.
    """

    group_type: ClassVar[GroupType]
    protocol_type: ClassVar[str]
    types: ClassVar[ModernRecordTypes]
    key_type: ClassVar[type[ModernRecordKey]]
    independent: ClassVar[tuple[IntEnum, ...]] = ()
    """Record types beside the target whose records do not have to be in one batch with others."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = self.target_epoch = FIRST_EPOCH
        self.metadata_hash = self.target_timestamp_ms = 0
        self.members: dict[str, M] = {}
        self.targets: dict[str, Partitions] = {}
        self._topic_readers: Counter[str] = Counter()
        self._has_epoch = self._has_target_epoch = False
        # Not in the log:
        self.checked_image: MetadataImage | None = None
        """The image that the hash of the topics was compared with last."""
        self.target_changes = 0
        """Rises whenever the target of a member changes."""

    # What a kind of group brings --------------------------------------------------------------------------------

    @abstractmethod
    def new_member(self, member_id: str) -> M: ...

    @abstractmethod
    def other_keys(self) -> Iterator[ModernRecordKey]:
        """The keys of records that only this kind of group has."""

    @abstractmethod
    def apply_other(self, key: ModernRecordKey, value: Any | None) -> None: ...

    @abstractmethod
    def other_value_of(self, key: ModernRecordKey) -> Any | None: ...

    @staticmethod
    @abstractmethod
    def write_value(value: Any) -> bytes: ...

    @staticmethod
    @abstractmethod
    def read_value(kind: Any, data: bytes) -> Any | None:
        """Raises CorruptMessage."""

    def remember(self, member: M) -> None:
        """Put the member into the indexes."""
        self._topic_readers.update(member.subscription.topics)

    def forget(self, member: M) -> None:
        """Take the member out of the indexes."""
        discount(self._topic_readers, member.subscription.topics)

    # Records ----------------------------------------------------------------------------------------------------

    def key(self, kind: IntEnum, name: str = "") -> ModernRecordKey:
        return self.key_type(kind, self.group_id, name)

    def keys(self) -> Iterator[ModernRecordKey]:
        """The keys of all records of the group, in the order in which Kafka deletes them."""
        for kind in (self.types.assignment, self.types.target):
            yield from (self.key(kind, member_id) for member_id in self.members)
        yield self.key(self.types.target_epoch)
        yield from (self.key(self.types.member, member_id) for member_id in self.members)
        yield from self.other_keys()
        yield self.key(self.types.group_epoch)

    def apply(self, key: ModernRecordKey, value: Any | None) -> None:
        """Change the group as this record says. A value of None is a tombstone."""
        types, name = self.types, key.name
        match key.kind:
            case types.group_epoch:
                self._has_epoch = value is not None
                epoch = value or GroupEpochValue(epoch=FIRST_EPOCH)
                self.epoch, self.metadata_hash = epoch.epoch, epoch.metadata_hash
            case types.target_epoch:
                self._has_target_epoch = value is not None
                target = value or TargetEpochValue(epoch=FIRST_EPOCH)
                self.target_epoch, self.target_timestamp_ms = target.epoch, target.timestamp_ms
            case types.target:
                self.target_changes += 1
                if value is None:
                    self.targets.pop(name, None)
                else:
                    self.targets[name] = value.partitions
            case types.member:
                self._put(name, None if value is None else self._member(name).subscribed(value))
            case types.assignment:
                if value is not None or name in self.members:
                    self._put(name, self._member(name).told(value))
            case _:
                self.apply_other(key, value)

    def value_of(self, key: ModernRecordKey) -> Any | None:
        """The value of this key in the log if the log is up to date; None: a tombstone, or nothing."""
        types = self.types
        match key.kind:
            case types.group_epoch:
                epoch = GroupEpochValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
                return epoch if self._has_epoch else None
            case types.target_epoch:
                target = TargetEpochValue(epoch=self.target_epoch, timestamp_ms=self.target_timestamp_ms)
                return target if self._has_target_epoch else None
            case types.target:
                partitions = self.targets.get(key.name)
                return None if partitions is None else TargetValue(partitions=partitions)
            case types.member:
                return self.members[key.name].subscription if key.name in self.members else None
            case types.assignment:
                return self.members[key.name].assignment_value() if key.name in self.members else None
            case _:
                return self.other_value_of(key)

    def record(self, key: ModernRecordKey, value: Any | None) -> KeyValue:
        """The record as it is written."""
        return write_record_key(key), None if value is None else self.write_value(value)

    def tombstones(self) -> list[KeyValue]:
        return [self.record(key, None) for key in self.keys()]

    def _member(self, member_id: str) -> M:
        return self.members.get(member_id) or self.new_member(member_id)

    def _put(self, member_id: str, member: M | None) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self.forget(before)
        if member is None:
            self.members.pop(member_id, None)
        else:
            self.members[member_id] = member
            self.remember(member)

    # Questions of the protocol ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def state(self) -> GroupState: ...

    def topics(self) -> set[str]:
        """The names of all topics that members read."""
        return set(self._topic_readers)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self._topic_readers

    def check_member(self, member_id: str) -> M:
        """Raises UnknownMemberId."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    # Questions of the coordinator -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def may_be_deleted(self) -> bool: ...

    @abstractmethod
    def check_commit(self, request: CommitRequest) -> None: ...

    @abstractmethod
    def check_offset_delete(self) -> None: ...

    @abstractmethod
    def expires_at(self, offset: OffsetValue, retention_ms: int) -> int | None: ...

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"Group {self.group_id} has {len(self.members)} members; stop them first.")

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id, protocol_type=self.protocol_type, state=self.state, group_type=self.group_type
        )

    def described(self) -> DescribedGroup:
        """DescribeGroups is for classic groups."""
        error = GroupIdNotFound(f"Group {self.group_id} is not a classic group.")
        return DescribedGroup(group_id=self.group_id, error=error)


def discount(counts: Counter[T], things: Iterable[T]) -> None:
    """Count one less of each, and forget those of which there is none left."""
    for thing in things:
        counts[thing] -= 1
        if counts[thing] == 0:
            del counts[thing]
