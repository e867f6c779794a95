"""Rows of `/topics/TOPIC/tiers` for what the tiering pipeline has converted, or is converting.

The names are for other programs to read: they stay when ours change.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, TypeAlias

from strandline.admin.http.migration_json import partition_migration
from strandline.controlplane.conversion import SegmentUpload
from strandline.hybrid.conversion.led_tiers import DisklessTiers
from strandline.hybrid.switching.status import PartitionMigration
from strandline.remote.values import RemoteLogSegmentMetadata

Json: TypeAlias = dict[str, Any]
_REMOTE: Final = "remote"  # of SegmentTier, which a broker without tiered storage does not load
_LOCAL: Final = "local"


def with_converted(rows: Collection[Json], tiers: Collection[DisklessTiers]) -> list[Json]:
    """Rows with what is diskless and converted, and one for each partition that was born diskless."""
    known = {row["partition"]: row for row in rows}
    found = {one.partition: one for one in tiers}
    return [
        _told(known.get(number) or _born_diskless(found[number]), found[number]) if number in found else known[number]
        for number in sorted(known.keys() | found.keys())
    ]


def _told(row: Json, tiers: DisklessTiers) -> Json:
    """Of a partition that began as a classic one, remote storage has the older part and what was converted since."""
    log, uploads = tiers.log, tiers.uploads
    told = {
        **row,
        "highest_remote_offset": max(row["highest_remote_offset"], log.tiered_high_offset),
        "pending_segments": row["pending_segments"] + len(uploads),
        "pending_bytes": row["pending_bytes"] + sum(one.size_bytes for one in uploads),
        "uploads": list(map(_upload, uploads)),
        "migration": {
            **row["migration"],
            "tiered_high_offset": max(row["migration"]["tiered_high_offset"], log.tiered_high_offset),
            "diskless_start_offset": log.diskless_start_offset,
            "high_watermark": log.high_watermark,
            "diskless_bytes": log.byte_size,
        },
    }
    if not tiers.segments:
        return told
    # What was converted is never on a disk, although the empty end of a local log has the same offset.
    b0 = log.diskless_log_start_offset
    older = [one for one in row["segments"] if one["tier"] == _LOCAL or one["start_offset"] < b0]
    known = {one["start_offset"] for one in older if one["tier"] != _LOCAL}
    others = [_segment(one) for one in tiers.segments if one.start_offset not in known]
    return told | {
        "remote_segments": len(tiers.finished),
        "remote_bytes": sum(one.segment_size_in_bytes for one in tiers.finished),
        "segments": sorted(older + others, key=lambda segment: int(segment["start_offset"])),
        "segments_left_out": 0,  # the others are all of them
    }


def _born_diskless(tiers: DisklessTiers) -> Json:
    """It has no local log: where that would end, it begins."""
    log = tiers.log
    return {
        "partition": tiers.partition,
        "log_start_offset": log.log_start_offset,
        "local_log_start_offset": log.diskless_start_offset,
        "highest_remote_offset": log.tiered_high_offset,
        "log_end_offset": log.diskless_start_offset,
        "local_bytes": 0,
        "remote_bytes": 0,
        "remote_segments": 0,
        "pending_segments": 0,
        "pending_bytes": 0,
        "deleting_segments": 0,
        "local_from": log.diskless_start_offset,
        "local_because": "",
        "last_error": None,
        "segments": [],
        "segments_left_out": 0,
        "migration": partition_migration(
            PartitionMigration(
                partition=tiers.partition,
                state=log.migration_state,
                b0=log.diskless_log_start_offset,
                tiering_complete=log.is_prefix_tiered,
                log_start=log.log_start_offset,
            )
        ),
    }


def _segment(segment: RemoteLogSegmentMetadata) -> Json:
    return {
        "start_offset": segment.start_offset,
        "end_offset": segment.end_offset,
        "bytes": segment.segment_size_in_bytes,
        "state": segment.state.name,
        "tier": _REMOTE,
    }


def _upload(upload: SegmentUpload) -> Json:
    return {
        "start_offset": upload.base_offset,
        "end_offset": upload.last_offset,
        "bytes": upload.size_bytes,
        "state": upload.state.value,
        "claimant": upload.claimant,
    }
