"""The switch of a topic from classic to diskless: what a change of its settings means, and when it is refused. Pure.

Every request that changes settings of a topic passes here: IncrementalAlterConfigs and AlterConfigs, with validate_only
or without. What the control plane is asked is in `switch_requests`; what is asked about logs and stores, before the
controller's turn, in `controller.switch_checks`. Not here: which other settings a diskless topic may have
(`config.rules`), and what a new topic is (`ConfigRules.new_topic_overrides`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from strandline.config import Settings, TopicConfig
from strandline.errors import InvalidConfig, KafkaStorageError, RequestTimedOut
from strandline.metadata.effects import DISKLESS_FLAG, TIERING_FLAG, UNCLEAN_FLAG
from strandline.metadata.image import TopicImage
from strandline.model import INTERNAL_TOPICS, REMOTE_LOG_METADATA_TOPIC

# The other tiers depend on these topics: they stay on the brokers' disks.
ALWAYS_LOCAL: Final = INTERNAL_TOPICS | {REMOTE_LOG_METADATA_TOPIC}


class Switch(enum.Enum):
    """What a change of settings asks of a topic."""

    NONE = enum.auto()
    START = enum.auto()
    """To become diskless."""
    REPEAT = enum.auto()
    """To be diskless, which it is to be already: partitions whose boundary was reset are switched again."""
    ABORT = enum.auto()
    """To stay classic after all."""


class CheckedTopic(NamedTuple):
    """A topic whose contents and stores were found fit for the switch, as it was then."""

    topic_id: UUID
    is_tiered: bool


def switch_of(before: TopicConfig, after: TopicConfig, *, is_named: bool) -> Switch:
    """What the change asks for. `is_named`: the request gives `diskless.enable`, and does not only leave it."""
    if after.diskless_enable:
        if not before.diskless_enable:
            return Switch.START
        return Switch.REPEAT if is_named else Switch.NONE
    return Switch.ABORT if before.diskless_enable else Switch.NONE


def check_start(topic: TopicImage, after: TopicConfig, settings: Settings) -> None:
    """Raise InvalidConfig if the metadata says that the topic cannot become diskless with the settings `after`."""
    reason = _why_not(topic, after, settings)
    if reason is not None:
        raise InvalidConfig(f"{DISKLESS_FLAG} of {topic.name} cannot become true: {reason}")


def _why_not(topic: TopicImage, after: TopicConfig, settings: Settings) -> str | None:
    if topic.name in ALWAYS_LOCAL:
        return "it is an internal topic, which the brokers keep on their disks."
    if not settings.diskless.diskless_storage_system_enable:
        return "diskless.storage.system.enable is false on the broker. Set it to true on every broker first."
    if after.is_compacted:
        return "the topic is compacted, and a diskless topic cannot be. Set cleanup.policy=delete first."
    if after.unclean_leader_election_enable:
        return (
            f"{UNCLEAN_FLAG} is true for the topic, and a leader that lacks records could begin the diskless part at "
            f"the wrong offset. Set {UNCLEAN_FLAG}=false on the topic first."
        )
    if after.remote_storage_enable and after.remote_log_copy_disable:
        return (
            "remote.log.copy.disable is true, so its history would never be complete in remote storage. Set "
            "remote.log.copy.disable=false first."
        )
    most = max(len(partition.replicas) for partition in topic.partitions)
    if most > 1:
        return (
            f"it has {most} replicas, and only a topic with one replica can become diskless in this version. Create a "
            "diskless topic, and let producers write to that one."
        )
    for partition in topic.partitions:
        if not partition.has_leader:
            return f"partition {partition.partition} has no leader. Try again when its broker is back."
    return None


def must_be_empty(after: TopicConfig, tiered_problem: str | None) -> bool:
    """Whether only a topic without records can become diskless: nothing would copy what it has.

    `tiered_problem`: why segments cannot be copied to remote storage at the moment; None if they can.
    """
    return tiered_problem is not None or not after.remote_storage_enable


def check_empty(topic: TopicImage, non_empty: Sequence[int], tiered_problem: str | None) -> None:
    """Raise InvalidConfig or KafkaStorageError if a topic that `must_be_empty` has partitions with records."""
    if non_empty and tiered_problem is not None:
        raise KafkaStorageError(
            f"{DISKLESS_FLAG} of {topic.name} cannot become true: {tiered_problem} Partition {non_empty[0]} has "
            "records that have to be copied to remote storage. Try again when that is possible."
        )
    if non_empty:
        raise InvalidConfig(
            f"{DISKLESS_FLAG} of {topic.name} cannot become true: partition {non_empty[0]} has records, and they "
            f"are not tiered. Set {TIERING_FLAG}=true first, or together with {DISKLESS_FLAG}=true."
        )


def check_unchanged(topic: TopicImage, after: TopicConfig, checked: CheckedTopic | None) -> None:
    """Raise RequestTimedOut if another topic was checked than the one that is to become diskless."""
    if checked != CheckedTopic(topic.topic_id, after.remote_storage_enable):
        raise RequestTimedOut(f"{topic.name} was changed while it was checked for {DISKLESS_FLAG}. Try again.")


def check_history_stays(topic: str, before: TopicConfig, after: TopicConfig) -> None:
    """Raise InvalidConfig if a topic that has become diskless, or is about to, would lose its older records."""
    stops_tiering = before.remote_storage_enable and not after.remote_storage_enable
    if stops_tiering and before.diskless_enable and after.diskless_enable:
        raise InvalidConfig(
            f"{TIERING_FLAG} of {topic} cannot become false: records from before the topic became diskless may be in "
            "remote storage, and would be lost. Leave it; they expire by retention.ms and retention.bytes."
        )


def with_kept_flags(before: Mapping[str, str], replacement: Mapping[str, str]) -> dict[str, str]:
    """The overrides that AlterConfigs asks for when it replaces `before`.

    It names all settings that the topic shall have. Clients that do not know `diskless.enable` leave it out: that keeps
    it as it is. A topic that is diskless, or is to become it, keeps `remote.storage.enable`, too: its older records
    are there.
    """
    kept = {DISKLESS_FLAG: before[DISKLESS_FLAG]} if DISKLESS_FLAG in before else {}
    if TIERING_FLAG in before and (_is_true(before) or _is_true(replacement)):
        kept[TIERING_FLAG] = before[TIERING_FLAG]
    return kept | dict(replacement)


def _is_true(overrides: Mapping[str, str]) -> bool:
    return overrides.get(DISKLESS_FLAG, "").strip().lower() == "true"
