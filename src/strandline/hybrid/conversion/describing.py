"""What a broker tells the pipeline about its cluster and its topics: pure functions over settings and progress."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from strandline.config import Settings, TieringSettings
from strandline.config.remote import STORAGE_PREFIX
from strandline.config.settings import BROKER_DECLARATIONS
from strandline.controlplane.conversion import LogTieringProgress
from strandline.conversion_api.values import (
    API_VERSION,
    ClusterDescription,
    PartitionTieringStatus,
    PipelineSettings,
    TieringStatus,
)
from strandline.errors import InvalidRequest

# What `diskless.storage` and `assembly.remote_storage` read to open the stores, but for rsm.config.*.
_STORE_SETTINGS: Final = (
    "strandline.objects.url",
    "inkless.object.key.prefix",
    "inkless.storage.s3.bucket.name",
    "inkless.storage.s3.region",
    "inkless.storage.s3.endpoint.url",
    "inkless.storage.s3.path.style.access.enabled",
    "inkless.storage.s3.api.call.timeout",
    "inkless.storage.s3.api.call.attempt.timeout",
    "inkless.fetch.hedge.ttfb.threshold.ms",
    "inkless.produce.upload.thread.pool.size",
    "remote.log.storage.system.enable",
    "remote.log.storage.manager.class.name",
    "remote.log.storage.manager.class.path",
)
_URLS: Final = frozenset({"strandline.objects.url", f"{STORAGE_PREFIX}url"})
_PATHS: Final = frozenset({"remote.log.storage.manager.class.path"})
_KEY_ID: Final = ".access.key.id"
"""Useless without its secret, which stays here: a pipeline that was given the secret has the id as well."""
_FAMILY: Final = "inkless."


def describe(settings: Settings, cluster_id: str) -> ClusterDescription:
    """The cluster, how to reach its stores, and how its operators want the pipeline to work.

    Raises InvalidRequest if no other process can reach the stores.
    """
    objects = settings.diskless.strandline_objects_url
    if objects.startswith("memory://"):
        raise InvalidRequest(
            f"strandline.objects.url is {objects}: objects in the memory of a broker cannot be converted. Keep them in "
            "a directory or in a bucket."
        )
    return ClusterDescription(
        api_version=API_VERSION,
        broker_id=settings.cluster.node_id,
        cluster_id=cluster_id,
        store_settings=dict(_store_settings(settings)),
        pipeline=_pipeline(settings.tiering),
    )


def _store_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Names and texts, as in a properties file that could be read on another machine. No credentials.

    Settings of a storage plugin that is not ours are left out: any of them may be a password.
    """
    for name in _STORE_SETTINGS:
        text = BROKER_DECLARATIONS[name].text_of(settings.value(name))
        if text is not None:
            yield name, _from_anywhere(name, text)
    for tail, text in settings.rsm_config.items():
        name = STORAGE_PREFIX + tail
        if name not in BROKER_DECLARATIONS:
            name = f"{STORAGE_PREFIX}{_FAMILY}{tail}"  # the storage knows these without inkless. as well
        declaration = BROKER_DECLARATIONS.get(name)
        if declaration is not None and not declaration.is_sensitive and not name.endswith(_KEY_ID):
            yield name, _from_anywhere(name, text)


def _from_anywhere(name: str, text: str) -> str:
    """A setting that means the same in any working directory."""
    if name in _URLS and text.startswith("file://"):
        return f"file://{os.path.abspath(text.removeprefix('file://'))}"
    return os.path.abspath(text) if name in _PATHS else text


def _pipeline(tiering: TieringSettings) -> PipelineSettings:
    return PipelineSettings(
        splitter_interval_ms=tiering.inkless_tiering_splitter_interval_ms,
        splitter_max_files_per_run=tiering.inkless_tiering_splitter_max_files_per_run,
        splitter_claim_duration_ms=tiering.inkless_tiering_splitter_claim_duration_ms,
        merger_interval_ms=tiering.inkless_tiering_merger_interval_ms,
        merger_initial_delay_ms=tiering.inkless_tiering_merger_initial_delay_ms,
        min_segment_bytes=tiering.inkless_tiering_min_segment_bytes,
        max_segment_bytes=tiering.inkless_tiering_max_segment_bytes,
        max_batches_per_run=tiering.inkless_tiering_max_batches_per_run,
        merger_max_wait_ms=tiering.inkless_tiering_merger_max_wait_ms,
        task_buffer_bytes=tiering.inkless_tiering_task_buffer_bytes,
        alert_after_failures=tiering.inkless_tiering_alert_after_failures,
    )


def statuses_of(progress: Sequence[LogTieringProgress]) -> tuple[TieringStatus, ...]:
    """How far each topic is, by name."""
    ordered = sorted(progress, key=lambda one: one.log.partition.topic_partition)
    topics = groupby(ordered, key=lambda one: one.log.partition.topic)
    return tuple(_status(topic, tuple(logs)) for topic, logs in topics)


def _status(topic: str, logs: Sequence[LogTieringProgress]) -> TieringStatus:
    partitions = tuple(map(_partition_status, logs))
    behind = max(partitions, key=lambda one: one.high_watermark - one.diskless_start_offset)
    wishes = logs[0].tiering
    return TieringStatus(
        topic_name=topic,
        tiered_high_offset=behind.tiered_high_offset,
        diskless_start_offset=behind.diskless_start_offset,
        high_watermark=behind.high_watermark,
        pending_batches_count=sum(one.pending_batches_count for one in partitions),
        pending_split_files_count=sum(one.pending_split_files_count for one in partitions),
        eligible_bytes=sum(one.eligible_bytes for one in partitions),
        is_paused=wishes.is_paused,
        lag_bytes=sum(one.lag_bytes for one in partitions),
        pending_merge_batches_count=sum(one.pending_merge_batches_count for one in partitions),
        triggered_at_ms=wishes.triggered_at_ms,
        partitions=partitions,
    )


def _partition_status(progress: LogTieringProgress) -> PartitionTieringStatus:
    log = progress.log
    return PartitionTieringStatus(
        partition=log.partition.partition,
        tiered_high_offset=log.tiered_high_offset,
        diskless_start_offset=log.diskless_start_offset,
        high_watermark=log.high_watermark,
        pending_batches_count=progress.eligible_rows,
        pending_split_files_count=progress.split_files,
        eligible_bytes=progress.eligible_bytes,
        lag_bytes=log.byte_size,
        pending_merge_batches_count=progress.split_rows,
    )
