"""The records of one decision, applied to the group as they are made, so that each step sees the one before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.partitions import Partitions, partition_values
from strandline.coordinators.groups.consumer.schemas import (
    ConsumerRecordKey,
    ConsumerRecordType,
    ConsumerRecordValue,
    GroupEpochValue,
    RegularExpressionValue,
    TargetEpochValue,
    TargetValue,
    write_consumer_key,
    write_consumer_value,
)
from strandline.coordinators.groups.consumer.topics import TopicHashes
from strandline.coordinators.groups.consumer.values import GroupLimits
from strandline.coordinators.runtime import KeyValue
from strandline.metadata.image import MetadataImage


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a decision looks at beside the group: the topics, the time, the settings."""

    image: MetadataImage
    hashes: TopicHashes
    now_ms: int
    limits: GroupLimits


class GroupChanges:
    """A decision in the making. If it is refused half-way, `take_back` leaves the group as it was."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self._made: list[_Change] = []

    @property
    def records(self) -> list[KeyValue]:
        """What has to be written, in order."""
        return [
            (write_consumer_key(change.key), None if change.value is None else write_consumer_value(change.value))
            for change in self._made
        ]

    def put(self, kind: ConsumerRecordType, name: str, value: ConsumerRecordValue | None) -> None:
        key = self.group.key(kind, name)
        write_consumer_key(key)  # refuses a name that is too long before anything has changed
        self._made.append(_Change(key, value, self.group.value_of(key)))
        self.group.apply(key, value)

    def take_back(self) -> None:
        for change in reversed(self._made):
            self.group.apply(change.key, change.before)
        self._made.clear()
        self.group.checked_image = None

    # Shorthands -------------------------------------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        self.put(ConsumerRecordType.MEMBER, member.member_id, member.subscription)

    def put_assignment(self, member: ConsumerMember) -> None:
        self.put(ConsumerRecordType.CURRENT_ASSIGNMENT, member.member_id, member.assignment_value())

    def put_target(self, member_id: str, partitions: Partitions) -> None:
        self.put(ConsumerRecordType.TARGET, member_id, TargetValue(partitions=partition_values(partitions)))

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self.put(ConsumerRecordType.TARGET_EPOCH, "", TargetEpochValue(epoch=epoch, timestamp_ms=timestamp_ms))

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.put(ConsumerRecordType.GROUP_EPOCH, "", GroupEpochValue(epoch=epoch, metadata_hash=metadata_hash))

    def put_expression(self, expression: str, value: RegularExpressionValue | None) -> None:
        self.put(ConsumerRecordType.REGULAR_EXPRESSION, expression, value)

    def remove_member(self, member_id: str) -> None:
        for kind in (
            ConsumerRecordType.CURRENT_ASSIGNMENT,
            ConsumerRecordType.TARGET,
            ConsumerRecordType.MEMBER,
        ):
            self.put(kind, member_id, None)

    def drop_unread(self, expressions: Iterable[str]) -> None:
        """Delete the matches of expressions that no member subscribes to any more."""
        for expression in sorted(set(expressions)):
            if expression and not self.group.readers_of(expression):
                self.put_expression(expression, None)


@dataclass(frozen=True, slots=True)
class _Change:
    key: ConsumerRecordKey
    value: ConsumerRecordValue | None
    before: ConsumerRecordValue | None = field(repr=False)
