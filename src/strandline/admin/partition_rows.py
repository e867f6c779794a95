"""A row for each partition that counts at this broker: its replicas, and diskless ones whose clients are sent here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.controlplane import DisklessLog
from strandline.hybrid.diskless.assigned import Assignment
from strandline.hybrid.diskless.figures import DisklessFigures
from strandline.model import NO_OFFSET
from strandline.replication import Partition, ReplicaManager


class PartitionRow(NamedTuple):
    """One partition. Offsets and sizes of a diskless one may be a few seconds old; -1 is unknown."""

    topic: str
    partition: int
    size: int
    """Bytes in local segments; of a diskless partition, of the rows of the control plane; of a hybrid one, both."""
    start: int = NO_OFFSET
    end: int = NO_OFFSET
    tiered_high: int = NO_OFFSET
    """The last offset in remote storage of a partition that has a diskless part."""
    diskless_start: int = NO_OFFSET
    """The first offset that is read from its diskless part."""
    segments: int = 0
    replicas: int = 1
    in_sync: int = 1
    is_under_replicated: bool = False
    is_under_min_isr: bool = False
    is_at_min_isr: bool = False


def partition_rows(
    replicas: ReplicaManager, assignment: Assignment, figures: DisklessFigures
) -> Iterator[PartitionRow]:
    """A row for each partition, made when it is asked for: the caller may pause between them."""
    local = set()
    for replica in tuple(replicas.partitions()):
        local.add(replica.topic_partition)
        yield _with_suffix(_classic(replica), figures.of(replica.topic_partition))
    for key in assignment.now().diskless:
        log = figures.of(key)
        if log is not None and key not in local:
            yield _with_suffix(PartitionRow(*key, size=0), log)


def _with_suffix(row: PartitionRow, suffix: DisklessLog | None) -> PartitionRow:
    """The control plane has the offsets of the whole log, also of the part that a hybrid partition has on disk."""
    if suffix is None or suffix.diskless_log_start_offset == NO_OFFSET:
        return row
    return row._replace(
        size=row.size + suffix.byte_size,
        start=suffix.log_start_offset,
        end=suffix.high_watermark,
        tiered_high=suffix.tiered_high_offset,
        diskless_start=suffix.diskless_start_offset,
    )


def _classic(replica: Partition) -> PartitionRow:
    log, in_sync, replicas = replica.log, len(replica.isr), len(replica.replicas)
    offsets, leads = log.offsets, replica.is_leader
    return PartitionRow(
        *replica.topic_partition,
        size=log.size,
        start=offsets.start,
        end=offsets.end,
        segments=len(log.segments),
        replicas=replicas if leads else 0,
        in_sync=in_sync if leads else 0,
        is_under_replicated=leads and in_sync < replicas,
        is_under_min_isr=leads and replica.is_under_min_isr,
        is_at_min_isr=leads and in_sync == min(log.config.min_insync_replicas, replicas),
    )
