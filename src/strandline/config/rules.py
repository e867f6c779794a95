"""Which settings topics and brokers may have together, and which of them may be changed while they are in use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from strandline.config.declare import Dynamic
from strandline.config.names import unknown_name
from strandline.config.settings import BROKER_DECLARATIONS, Settings
from strandline.config.topic import TOPIC_DECLARATIONS, TopicConfig
from strandline.errors import InvalidConfig, InvalidRequest

DYNAMIC_NAMES: Final = frozenset(
    name for name, declaration in BROKER_DECLARATIONS.items() if declaration.dynamic is not Dynamic.READ_ONLY
)
_THROTTLED_REPLICAS: Final = re.compile(r"\*|[0-9]+:[0-9]+")


def validate_topic_overrides(
    overrides: Mapping[str, str], settings: Settings, *, may_be_switched: bool = False
) -> None:
    """Raise InvalidConfig if a topic may not have these overrides on a broker with these settings.

    `may_be_switched`: the topic exists. One that was tiered when it became diskless has both flags.
    """
    for name in overrides:
        if name not in TOPIC_DECLARATIONS:
            raise unknown_name(name, TOPIC_DECLARATIONS, what="a topic setting")
    config = settings.topic_config(overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise InvalidConfig(
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) must not be greater than "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})."
        )
    _check_throttled_replicas("leader.replication.throttled.replicas", config.leader_replication_throttled_replicas)
    _check_throttled_replicas("follower.replication.throttled.replicas", config.follower_replication_throttled_replicas)
    if config.diskless_enable:
        _check_diskless(config, settings, may_be_tiered=may_be_switched)
    if config.remote_storage_enable:
        _check_remote(config, settings)


def check_tiering_change(topic: str, before: TopicConfig, after: TopicConfig) -> None:
    """Raise InvalidConfig if tiering of a topic may not be switched off in this way."""
    if before.remote_storage_enable and not after.remote_storage_enable and not after.remote_log_delete_on_disable:
        raise InvalidConfig(
            f"remote.storage.enable of {topic} cannot become false while there may be segments in remote storage. To "
            "delete those, set remote.storage.enable=false and remote.log.delete.on.disable=true together; to keep "
            "them and copy no more, set remote.log.copy.disable=true and leave remote.storage.enable=true."
        )


def _check_throttled_replicas(name: str, value: tuple[str, ...]) -> None:
    if not all(_THROTTLED_REPLICAS.fullmatch(entry) for entry in value) or ("*" in value and len(value) > 1):
        raise InvalidConfig(f"{name} must be *, or pairs of partition:broker separated by commas.")


def _check_diskless(config: TopicConfig, settings: Settings, *, may_be_tiered: bool) -> None:
    if not settings.diskless.diskless_storage_system_enable:
        raise InvalidConfig(
            "diskless.enable cannot be true while diskless.storage.system.enable is false on the broker."
        )
    if config.is_compacted:
        raise InvalidConfig(
            "A diskless topic cannot be compacted in this version: cleanup.policy must be delete with diskless.enable."
        )
    if config.remote_storage_enable and not may_be_tiered:
        raise InvalidConfig("diskless.enable and remote.storage.enable cannot both be true for a new topic.")
    if config.local_retention_ms != -1:  # of diskless topics, -1 means that no record is converted because of its age
        _check_local_retention("ms", config.local_retention_ms, config.retention_ms)
    _check_local_retention("bytes", config.local_retention_bytes, config.retention_bytes)


def _check_remote(config: TopicConfig, settings: Settings) -> None:
    if not settings.tiers.remote_log_storage_system_enable:
        raise InvalidConfig(
            "remote.storage.enable cannot be true while remote.log.storage.system.enable is false on the broker."
        )
    if "compact" in config.cleanup_policy:
        raise InvalidConfig(
            "A tiered topic cannot be compacted: cleanup.policy must be delete (or empty) with remote.storage.enable."
        )
    for unit, local, total in (
        ("ms", config.local_retention_ms, config.retention_ms),
        ("bytes", config.local_retention_bytes, config.retention_bytes),
    ):
        if config.remote_log_copy_disable and local not in (-2, total):
            raise InvalidConfig(
                f"With remote.log.copy.disable, local.retention.{unit} must be -2 or equal to retention.{unit} "
                f"({total})."
            )
        _check_local_retention(unit, local, total)


def _check_local_retention(unit: str, local: int, total: int) -> None:
    if local == -2:
        return
    if total >= 0 and (local == -1 or local > total):
        raise InvalidConfig(
            f"local.retention.{unit} must be from 0 to retention.{unit} ({total}), or -2, but is '{local}'."
        )


def validate_broker_overrides(overrides: Mapping[str, str], settings: Settings, *, is_cluster_default: bool) -> None:
    """Check the whole set of dynamic settings that a broker, or the cluster default, is to have.

    Raises InvalidRequest, which is Kafka's answer to dynamic broker settings that cannot be applied,
    for a name that is unknown, read-only or per-broker (in a cluster default), and for an illegal value.
    """
    for name, text in overrides.items():
        _check_name(name, is_cluster_default=is_cluster_default)
        try:
            BROKER_DECLARATIONS[name].parse(text)
        except InvalidConfig as error:
            raise InvalidRequest(str(error)) from error
    default = overrides if is_cluster_default else settings.cluster_default
    own = settings.per_broker if is_cluster_default else overrides
    rejected = settings.with_dynamic(default, own).rejected
    if rejected:
        raise InvalidRequest(" ".join(rejected))


def _check_name(name: str, *, is_cluster_default: bool) -> None:
    declaration = BROKER_DECLARATIONS.get(name)
    if declaration is None:
        raise InvalidRequest(str(unknown_name(name, DYNAMIC_NAMES, what="a setting of the broker")))
    if declaration.dynamic is Dynamic.READ_ONLY:
        raise InvalidRequest(
            f"{name} cannot be changed while the broker runs; set it in the file and restart the broker."
        )
    if is_cluster_default and declaration.dynamic is Dynamic.PER_BROKER:
        raise InvalidRequest(f"{name} belongs to one broker: it cannot be changed for all brokers at once.")
