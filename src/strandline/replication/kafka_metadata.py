"""Kafka's own metadata log (`__cluster_metadata-0`), as far as adoption needs it.

Read once, at a start: topic settings, which nodes have replicas of a partition, and the producer ids that are used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from strandline.errors import InvalidConfig
from strandline.model import TopicPartition
from strandline.records import iter_headers, read_records
from strandline.wire.primitives import (
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tag,
    read_uuid,
    read_uvarint,
)

KAFKA_METADATA_TOPIC: Final = "__cluster_metadata"
_TOPIC_RECORD: Final = 2
_PARTITION_RECORD: Final = 3
_CONFIG_RECORD: Final = 4
_PARTITION_CHANGE_RECORD: Final = 5
_REMOVE_TOPIC_RECORD: Final = 9
_PRODUCER_IDS_RECORD: Final = 15
_TOPIC_RESOURCE: Final = 2
_ISR_TAG: Final = 0
_REPLICAS_TAG: Final = 2
_PARTITION = Struct(">i")
_PRODUCER_IDS = Struct(">iqq")


class KafkaReplicas(NamedTuple):
    """The nodes that have a partition, and those of them that are in sync."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class KafkaMetadata:
    """What `read` found in the newest snapshot and the log after it."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.next_producer_id = 0
        self._names: dict[UUID, str] = {}
        self._replicas: dict[UUID, dict[int, KafkaReplicas]] = {}

    @property
    def replicas(self) -> dict[TopicPartition, KafkaReplicas]:
        """Every partition that Kafka has, with its replicas."""
        return {
            TopicPartition(name, number): known
            for topic_id, name in self._names.items()
            for number, known in self._replicas.get(topic_id, {}).items()
        }

    def read(self, log_dirs: Sequence[str]) -> None:
        """Replay the newest snapshot and the log after it."""
        directories = [Path(d, f"{KAFKA_METADATA_TOPIC}-0") for d in log_dirs]
        found = next((directory for directory in directories if directory.is_dir()), None)
        if found is None:
            raise InvalidConfig(
                f"{', '.join(log_dirs)} hold partitions that Kafka wrote, but not its {KAFKA_METADATA_TOPIC}-0, which "
                f"has the settings of the topics. Copy that directory there too (it is in metadata.log.dir)."
            )
        snapshots = sorted(found.glob("*.checkpoint"))
        start = 0
        if snapshots:
            start = int(snapshots[-1].name.partition("-")[0])
            self._replay(snapshots[-1].read_bytes(), 0)
        for segment in sorted(found.glob("*.log")):
            self._replay(segment.read_bytes(), start)

    def _replay(self, data: bytes, from_offset: int) -> None:
        for position, header in iter_headers(data):
            if header.is_control or header.last_offset < from_offset:
                continue
            for record in read_records(data[position : position + header.size]):
                if record.value is not None and record.offset >= from_offset:
                    self._apply(memoryview(record.value))

    def _apply(self, value: memoryview) -> None:
        _, position = read_uvarint(value, 0)  # the version of the frame
        kind, position = read_uvarint(value, position)
        _, position = read_uvarint(value, position)
        if kind == _TOPIC_RECORD:
            name, position = read_compact_string(value, position)
            self._names[read_uuid(value, position)[0]] = name
        elif kind == _PARTITION_RECORD:
            self._apply_partition(value, position)
        elif kind == _PARTITION_CHANGE_RECORD:
            self._apply_partition_change(value, position)
        elif kind == _REMOVE_TOPIC_RECORD:
            topic_id = read_uuid(value, position)[0]
            self.configs.pop(self._names.pop(topic_id, ""), None)
            self._replicas.pop(topic_id, None)
        elif kind == _CONFIG_RECORD:
            self._apply_config(value, position)
        elif kind == _PRODUCER_IDS_RECORD:
            self.next_producer_id = _PRODUCER_IDS.unpack_from(value, position)[2]

    def _apply_partition(self, value: memoryview, position: int) -> None:
        (number,) = _PARTITION.unpack_from(value, position)
        topic_id, position = read_uuid(value, position + _PARTITION.size)
        replicas, position = _read_nodes(value, position)
        isr, _ = _read_nodes(value, position)
        self._replicas.setdefault(topic_id, {})[number] = KafkaReplicas(replicas, isr)

    def _apply_partition_change(self, value: memoryview, position: int) -> None:
        (number,) = _PARTITION.unpack_from(value, position)
        topic_id, position = read_uuid(value, position + _PARTITION.size)
        known = self._replicas.get(topic_id, {}).get(number)
        if known is None:
            return
        count, position = read_uvarint(value, position)
        for _ in range(count):
            tag, start, position = read_tag(value, position)
            if tag == _ISR_TAG:
                known = known._replace(isr=_read_nodes(value, start)[0])
            elif tag == _REPLICAS_TAG:
                known = known._replace(replicas=_read_nodes(value, start)[0])
        self._replicas[topic_id][number] = known

    def _apply_config(self, value: memoryview, position: int) -> None:
        resource_type = value[position]
        resource, position = read_compact_string(value, position + 1)
        name, position = read_compact_string(value, position)
        text, _ = read_compact_nullable_string(value, position)
        if resource_type != _TOPIC_RESOURCE:
            return
        if text is None:
            self.configs.get(resource, {}).pop(name, None)
        else:
            self.configs.setdefault(resource, {})[name] = text


def _read_nodes(value: memoryview, position: int) -> tuple[tuple[int, ...], int]:
    count, position = read_compact_array_length(value, position, _PARTITION.size)
    nodes, position = read_numbers(value, position, count, "i")
    return tuple(nodes), position
