"""A decision about a share group: it changes the group at once, and knows the records that say so."""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.coordinators.groups.consumer.topics import TopicHashes
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.member import ShareMember
from strandline.coordinators.groups.share.partitions import SharePartitions
from strandline.coordinators.groups.share.schemas import (
    ShareGroupEpochValue,
    ShareRecordKey,
    ShareRecordType,
    ShareRecordValue,
    ShareStatesValue,
    ShareTargetEpochValue,
    ShareTargetValue,
    write_share_key,
    write_share_value,
)
from strandline.coordinators.groups.share.values import ShareLimits
from strandline.coordinators.runtime import KeyValue
from strandline.metadata.image import MetadataImage


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSurroundings:
    """What a decision looks at beside the group: the topics, the time, the settings."""

    image: MetadataImage
    hashes: TopicHashes
    now_ms: int
    limits: ShareLimits
    retry_ms: int
    """After how long the creation of state in the share coordinator counts as lost."""


class ShareChanges:
    """A decision in the making. If it is refused half-way, `take_back` leaves the group as it was."""

    def __init__(self, group: ShareGroup) -> None:
        self.group = group
        self._made: list[_ShareChange] = []

    @property
    def records(self) -> list[KeyValue]:
        """What has to be written, in order."""
        return [
            (write_share_key(change.key), None if change.value is None else write_share_value(change.value))
            for change in self._made
        ]

    def put(self, kind: ShareRecordType, member_id: str, value: ShareRecordValue | None) -> None:
        key = self.group.key(kind, member_id)
        write_share_key(key)  # refuses a name that is too long before anything has changed
        self._made.append(_ShareChange(key, value, self.group.value_of(key)))
        self.group.apply(key, value)

    def take_back(self) -> None:
        for change in reversed(self._made):
            self.group.apply(change.key, change.before)
        self._made.clear()
        self.group.checked_image = None

    # Shorthands -------------------------------------------------------------------------------------------------

    def put_member(self, member: ShareMember) -> None:
        self.put(ShareRecordType.MEMBER, member.member_id, member.subscription)

    def put_assignment(self, member: ShareMember) -> None:
        self.put(ShareRecordType.ASSIGNMENT, member.member_id, member.assignment_value())

    def put_target(self, member_id: str, partitions: SharePartitions) -> None:
        self.put(ShareRecordType.TARGET, member_id, ShareTargetValue(partitions=partitions))

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self.put(ShareRecordType.TARGET_EPOCH, "", ShareTargetEpochValue(epoch=epoch, timestamp_ms=timestamp_ms))

    def put_states(self, states: ShareStatesValue) -> None:
        self.put(ShareRecordType.STATES, "", states)

    def raise_epoch(self, around: ShareSurroundings, *, beyond: int = 0) -> None:
        """The members, their topics or the partitions with state have changed: the group needs another target."""
        group = self.group
        metadata_hash = around.hashes.of_topics(group.topics, around.image)
        value = ShareGroupEpochValue(epoch=max(group.epoch, beyond) + 1, metadata_hash=metadata_hash)
        self.put(ShareRecordType.GROUP_EPOCH, "", value)
        group.checked_image = around.image

    def remove_member(self, member_id: str, around: ShareSurroundings) -> None:
        for kind in (ShareRecordType.ASSIGNMENT, ShareRecordType.TARGET, ShareRecordType.MEMBER):
            self.put(kind, member_id, None)
        self.raise_epoch(around)


@dataclass(frozen=True, slots=True)
class _ShareChange:
    key: ShareRecordKey
    value: ShareRecordValue | None
    before: ShareRecordValue | None = field(repr=False)
