"""How far a stream has come, as Spark keeps it in the checkpoint of the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from strandline.model import Offset, TopicPartition, uuid_from_text, uuid_to_text

Offsets = dict[str, dict[str, int | str]]
"""{"topic": {"id": "the topic's id", "0": offset}}. Checkpoints of earlier versions have no ids."""

_ID: Final = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Offsets, and the topics that they are of: one that is created again under its name has another id."""

    offsets: Mapping[TopicPartition, Offset]
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    """Those that are known."""

    def is_same_topic(self, other: Checkpoint, topic: str) -> bool | None:
        """Whether both mean the same topic by a name; None if that is not known."""
        mine, theirs = self.topic_ids.get(topic), other.topic_ids.get(topic)
        return None if mine is None or theirs is None else mine == theirs


def to_json(checkpoint: Checkpoint) -> Offsets:
    """As Spark keeps it. Always in the same order: Spark compares the text."""
    found: Offsets = {}
    for (topic, partition), offset in sorted(checkpoint.offsets.items()):
        if topic not in found:
            topic_id = checkpoint.topic_ids.get(topic)
            found[topic] = {} if topic_id is None else {_ID: uuid_to_text(topic_id)}
        found[topic][str(partition)] = offset
    return found


def from_json(document: Mapping[str, Mapping[str, int | str]]) -> Checkpoint:
    """The reverse."""
    return Checkpoint(
        offsets={
            TopicPartition(topic, int(key)): int(value)
            for topic, entries in document.items()
            for key, value in entries.items()
            if key != _ID
        },
        topic_ids={topic: uuid_from_text(str(entries[_ID])) for topic, entries in document.items() if _ID in entries},
    )
