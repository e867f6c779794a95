"""Where the segments of a partition are, as `/topics/TOPIC/tiers` tells it and `strandline topics tiers` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager import PartitionTierStatus


def partition_tiers(status: PartitionTierStatus) -> dict[str, Any]:
    """One partition. The names are for others to read: they stay when ours change."""
    return {
        "partition": status.partition.partition,
        "log_start_offset": status.log_start_offset,
        "local_log_start_offset": status.local_log_start_offset,
        "highest_remote_offset": status.highest_offset_in_remote_storage,
        "log_end_offset": status.log_end_offset,
        "local_bytes": status.local_bytes,
        "remote_bytes": status.remote_bytes,
        "remote_segments": status.remote_segments,
        "pending_segments": status.pending_segments,
        "pending_bytes": status.pending_bytes,
        "deleting_segments": status.deleting_segments,
        "local_from": status.local_from,
        "local_because": status.local_because,
        "last_error": status.last_error,
        "segments": [row._asdict() | {"tier": row.tier.value} for row in status.segments],
    }
