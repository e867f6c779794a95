"""The parts of tiered storage of one broker, once it is open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strandline.config.tiers import TierSettings
from strandline.model import TopicIdPartition
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without tiered storage does not load them
    from strandline.remote.deadline_storage import DeadlineStorage
    from strandline.remote.index_cache import RemoteIndexCache
    from strandline.remote.manager import RemoteLogManager
    from strandline.remote.ports import RemoteLogMetadataManager
    from strandline.remote.quota import RateQuota
    from strandline.remote.reader import RemoteLogReader


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTier:
    """What tiered partitions use, and what works for them in the background."""

    storage: DeadlineStorage
    metadata: RemoteLogMetadataManager
    indexes: RemoteIndexCache
    reader: RemoteLogReader
    manager: RemoteLogManager
    fetch_quota: RateQuota

    def follow(self, settings: TierSettings) -> None:
        """Settings that may change while the broker runs have changed, perhaps."""
        self.manager.change_copy_quota(settings.remote_log_manager_copy_max_bytes_per_second)
        self.fetch_quota.change(settings.remote_log_manager_fetch_max_bytes_per_second)
        self.reader.limits = replace(
            self.reader.limits,
            fetch_max_wait_ms=settings.remote_fetch_max_wait_ms,
            list_offsets_timeout_ms=settings.remote_list_offsets_request_timeout_ms,
        )

    def remote_bytes(self, partition: Partition) -> int:
        """What a partition has in remote storage; 0 as long as that is not known."""
        key = TopicIdPartition(partition.topic_id, partition.topic_partition)
        if not self.metadata.is_ready(key):
            return 0
        return self.metadata.remote_log_summary(key).finished_bytes
