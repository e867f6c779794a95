"""The settings of the RemoteLogManager, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model import INT64_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerLimits:
    """Named after `remote.log.manager.*`, with the same defaults."""

    copier_thread_pool_size: int = 10
    """Segments that are copied at the same time."""
    expiration_thread_pool_size: int = 10
    """Partitions whose remote segments are deleted at the same time."""
    task_interval_ms: int = 30_000
    task_retry_backoff_ms: int = 500
    task_retry_backoff_max_ms: int = 30_000
    task_retry_jitter: float = 0.2
    copy_max_bytes_per_second: int = INT64_MAX
    copy_quota_window_num: int = 11
    copy_quota_window_size_seconds: int = 1
    custom_metadata_max_bytes: int = 128
    """remote.log.metadata.custom.metadata.max.bytes"""
    metadata_deadline_ms: int = 180_000
    """Deadline of one write of remote log metadata. Longer than that of the topic-based manager itself."""
    abandoned_copy_ms: int = 6 * 3_600_000
    """A copy that another broker began longer ago than this is abandoned. A broker knows its own copies."""
