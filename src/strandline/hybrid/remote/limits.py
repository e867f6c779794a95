"""The settings of tiered storage as its components take them, and those that a cluster cannot use."""

from __future__ import annotations

from collections.abc import Collection

from strandline.clock import Clock
from strandline.config import Settings, TierSettings
from strandline.config.passed_on import handed_on
from strandline.config.remote import BUILT_IN_STORAGE
from strandline.errors import InvalidConfig
from strandline.remote.manager import ManagerLimits
from strandline.remote.quota import RateQuota
from strandline.remote.reader import RemoteReaderLimits


def check_one_storage(settings: Settings, brokers: Collection[int]) -> None:
    """Refuse a default storage in a cluster: each broker would have its own, which the others cannot read."""
    others = sorted(set(brokers) - {settings.cluster.node_id})
    is_own = settings.tiers.remote_log_storage_manager_class_name == BUILT_IN_STORAGE
    if others and is_own and not handed_on(settings.static, settings.tiers.remote_log_storage_manager_impl_prefix):
        names = ", ".join(map(str, others))
        raise InvalidConfig(
            f"The cluster has other brokers ({names}), and all of them have to keep segments in one storage, but "
            f"{settings.tiers.rsm_config_url} would be used by this broker alone. Give every broker the same "
            "rsm.config.url."
        )


def manager_limits(tiers: TierSettings) -> ManagerLimits:
    """What `RemoteLogManager` takes of them."""
    return ManagerLimits(
        copier_thread_pool_size=tiers.remote_log_manager_copier_thread_pool_size,
        expiration_thread_pool_size=tiers.remote_log_manager_expiration_thread_pool_size,
        task_interval_ms=tiers.remote_log_manager_task_interval_ms,
        task_retry_backoff_ms=tiers.remote_log_manager_task_retry_backoff_ms,
        task_retry_backoff_max_ms=tiers.remote_log_manager_task_retry_backoff_max_ms,
        task_retry_jitter=tiers.remote_log_manager_task_retry_jitter,
        copy_max_bytes_per_second=tiers.remote_log_manager_copy_max_bytes_per_second,
        copy_quota_window_num=tiers.remote_log_manager_copy_quota_window_num,
        copy_quota_window_size_seconds=tiers.remote_log_manager_copy_quota_window_size_seconds,
        custom_metadata_max_bytes=tiers.remote_log_metadata_custom_metadata_max_bytes,
    )


def reader_limits(tiers: TierSettings) -> RemoteReaderLimits:
    """What `RemoteLogReader` takes of them."""
    return RemoteReaderLimits(
        parallel_reads=tiers.remote_log_reader_threads,
        max_pending=tiers.remote_log_reader_max_pending_tasks,
        cache_max_bytes=tiers.strandline_remote_read_cache_max_bytes,
        fetch_max_wait_ms=tiers.remote_fetch_max_wait_ms,
        list_offsets_timeout_ms=tiers.remote_list_offsets_request_timeout_ms,
    )


def fetch_quota(tiers: TierSettings, clock: Clock) -> RateQuota:
    """How much may be fetched."""
    return RateQuota(
        tiers.remote_log_manager_fetch_max_bytes_per_second,
        windows=tiers.remote_log_manager_fetch_quota_window_num,
        window_seconds=tiers.remote_log_manager_fetch_quota_window_size_seconds,
        clock=clock,
    )
