"""How far topics are on their way to diskless, as JSON: `/topics/TOPIC/migration` and `/migrations`.

`strandline migration` reads it. The names are for other programs to read: they stay when ours change.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

from strandline.controlplane import MigrationState
from strandline.hybrid.switching.status import MigrationPhase, PartitionMigration, TopicMigrationStatus, progress

Json: TypeAlias = dict[str, Any]


def topic_migration(status: TopicMigrationStatus) -> Json:
    """One topic."""
    return {
        "topic": status.topic,
        "state": None if status.state is None else status.state.value,
        "partitions": [partition_migration(partition) for partition in status.partitions],
        "progress": round(status.progress, 1),
        "queue_position": status.position,
        "uncopied_bytes": sum(partition.uncopied_bytes for partition in status.partitions),
    }


def partition_migration(partition: PartitionMigration) -> Json:
    """One partition."""
    return {
        "partition": partition.partition,
        "state": partition.state.value,
        "phase": None if partition.phase is None else partition.phase.value,
        "b0": partition.b0,
        "tiering_complete": partition.tiering_complete,
        "problem": partition.problem,
        "held_by_producers": list(partition.held_by),
        "log_start_offset": partition.log_start,
        "local_start_offset": partition.local_start,
        "tiered_high_offset": partition.tiered_high,
        "diskless_start_offset": partition.diskless_start,
        "high_watermark": partition.high_watermark,
        "remote_bytes": partition.remote_bytes,
        "local_bytes": partition.local_bytes,
        "diskless_bytes": partition.diskless_bytes,
        "copied_bytes": partition.copied_bytes,
        "total_bytes": partition.total_bytes,
        "uncopied_bytes": partition.uncopied_bytes,
    }


def read_topic(found: Json) -> TopicMigrationStatus:
    """The inverse of `topic_migration`."""
    return TopicMigrationStatus(
        topic=found["topic"],
        state=None if found["state"] is None else MigrationState(found["state"]),
        position=found["queue_position"],
        partitions=tuple(map(_read_partition, found["partitions"])),
    )


def _read_partition(found: Json) -> PartitionMigration:
    return PartitionMigration(
        partition=found["partition"],
        state=MigrationState(found["state"]),
        phase=None if found["phase"] is None else MigrationPhase(found["phase"]),
        b0=found["b0"],
        tiering_complete=found["tiering_complete"],
        problem=found["problem"],
        held_by=tuple(found["held_by_producers"]),
        log_start=found["log_start_offset"],
        local_start=found["local_start_offset"],
        tiered_high=found["tiered_high_offset"],
        high_watermark=found["high_watermark"],
        remote_bytes=found["remote_bytes"],
        local_bytes=found["local_bytes"],
        diskless_bytes=found["diskless_bytes"],
        copied_bytes=found["copied_bytes"],
        total_bytes=found["total_bytes"],
    )


def with_migration(rows: Collection[Json], led: Collection[PartitionMigration]) -> list[Json]:
    """Rows of `/topics/TOPIC/tiers` with the diskless part of each partition, and one for those without a row."""
    tiered = {row["partition"]: row for row in rows}
    hybrid = {partition.partition: partition for partition in led}
    return [
        (tiered.get(number) or _tiers(hybrid[number]))
        | ({"migration": partition_migration(hybrid[number])} if number in hybrid else {})
        for number in sorted(tiered.keys() | hybrid.keys())
    ]


def _tiers(partition: PartitionMigration) -> Json:
    """A partition that is not tiered any more, or has nothing in remote storage that would be looked after."""
    end = partition.b0 if partition.b0 >= 0 else partition.high_watermark
    return {
        "partition": partition.partition,
        "log_start_offset": partition.log_start,
        "local_log_start_offset": partition.local_start,
        "highest_remote_offset": partition.tiered_high,
        "log_end_offset": end,
        "local_bytes": partition.local_bytes,
        "remote_bytes": partition.remote_bytes,
        "remote_segments": 0,
        "pending_segments": 0,
        "pending_bytes": partition.uncopied_bytes,
        "deleting_segments": 0,
        "local_from": max(partition.local_start, partition.tiered_high + 1),
        "local_because": "",
        "last_error": None,
        "segments": [],
        "segments_left_out": 0,
    }


def led_migrations(partitions: Collection[PartitionMigration]) -> Json:
    """The partitions of a topic that a broker leads, for `/status`."""
    return {"progress": round(progress(partitions), 1), "partitions": list(map(partition_migration, partitions))}
