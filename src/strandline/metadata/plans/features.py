"""Changes of the levels of features, by Kafka's rules: all of a request, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from strandline.errors import InvalidRequest, InvalidUpdateVersion, UnsupportedVersion
from strandline.metadata.features import FIRST_LEVELS, METADATA_VERSION, FeatureRange, finalized_level, may_replicate
from strandline.metadata.image import EMPTY_IMAGE, BrokerImage, FeatureSupport, MetadataImage
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import (
    BrokerChangeRecord,
    ClusterRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    ReplicaDirectoryRecord,
)
from strandline.metadata.requests import Plan


class FeatureUpgrade(IntEnum):
    """In which direction a level may change. Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureWish:
    """A level that a feature is to have. The number of the kind of upgrade may be unknown."""

    name: str
    level: int
    upgrade: int = FeatureUpgrade.UPGRADE


def first_records(cluster_id: str, rules: ConfigRules) -> tuple[MetadataRecord, ...]:
    """What a new cluster begins with: its id, the newest levels, and what these need."""
    levels = (FeatureLevelRecord(name=name, level=level) for name, level in FIRST_LEVELS.items())
    return (ClusterRecord(cluster_id=cluster_id), *levels, *rules.replicated_defaults(EMPTY_IMAGE))


def check_level(image: MetadataImage, records: Iterable[MetadataRecord]) -> None:
    """Raise UnsupportedVersion if a record is about replicas, and a broker of this cluster may know nothing of them.

    Plans do not make such records. This is the one place that all records pass, whichever plan made them.
    """
    if may_replicate(image):
        return
    if any(map(_is_of_replicas, records)):
        raise UnsupportedVersion(
            f"The metadata of this cluster is at level {finalized_level(image, METADATA_VERSION)} of "
            f"{METADATA_VERSION}, which has no replicas. When all brokers are upgraded, raise it with kafka-features."
        )


def _is_of_replicas(record: MetadataRecord) -> bool:
    match record:
        case PartitionRecord():
            return len(record.replicas) > 1
        case PartitionChangeRecord():
            return (record.replicas, record.elr, record.last_known_elr) != (None, None, None)
        case RegisterBrokerRecord():
            return bool(record.log_dirs)
        case BrokerChangeRecord():
            return record.failed_log_dirs is not None
        case ReplicaDirectoryRecord():
            return True
        case _:
            return False


def check_features(image: MetadataImage, node_id: int, features: Iterable[FeatureSupport]) -> None:
    """Raise UnsupportedVersion if a broker with this support cannot work at the levels that were chosen."""
    ranges = {one.name: one for one in features}
    for name, level in image.administered.feature_levels.items():
        known = ranges.get(name, FeatureSupport(name, 0, 0))
        if not known.min <= level <= known.max:
            raise UnsupportedVersion(
                f"Broker {node_id} cannot register: {name} has level {level} in this cluster, and the broker supports "
                f"{known.min} to {known.max}. Start a newer release there."
            )


def plan_features(
    image: MetadataImage, wishes: Sequence[FeatureWish], known: Mapping[str, FeatureRange], rules: ConfigRules
) -> Plan[None]:
    """Give features other levels. Raises InvalidUpdateVersion or InvalidRequest if one of them may not have it."""
    if len({wish.name for wish in wishes}) != len(wishes):
        raise InvalidRequest("A feature may be named only once.")
    records: list[MetadataRecord] = []
    for wish in wishes:
        _check(image, wish, known.get(wish.name))
        if finalized_level(image, wish.name) != wish.level:
            records.append(FeatureLevelRecord(name=wish.name, level=wish.level))
            if wish.name == METADATA_VERSION:
                records += rules.replicated_defaults(image)
    return Plan(records, None)


def _check(image: MetadataImage, wish: FeatureWish, known: FeatureRange | None) -> None:
    if wish.upgrade not in FeatureUpgrade.__members__.values():
        raise InvalidUpdateVersion(f"There is no upgrade of type {wish.upgrade} (feature {wish.name}).")
    if known is None:
        raise InvalidUpdateVersion(f"The feature {wish.name} is not known to this cluster.")
    if wish.level not in known:
        raise InvalidUpdateVersion(
            f"The feature {wish.name} cannot have level {wish.level}, only {known.min} to {known.max}."
        )
    for broker in image.brokers.values():
        _check_supported(broker, wish)
    level, is_upgrade = finalized_level(image, wish.name), wish.upgrade == FeatureUpgrade.UPGRADE
    if wish.level < level and wish.name == METADATA_VERSION:
        raise InvalidUpdateVersion(
            f"The feature {wish.name} has level {level} and cannot go down: the metadata may have records that older "
            "releases cannot read."
        )
    if wish.level < level and is_upgrade:
        raise InvalidUpdateVersion(
            f"The feature {wish.name} has level {level}. To go down to {wish.level}, ask for a downgrade."
        )
    if wish.level > level and not is_upgrade:
        raise InvalidUpdateVersion(
            f"The feature {wish.name} has level {level}. Going up to {wish.level} is no downgrade: ask for an upgrade."
        )


def _check_supported(broker: BrokerImage, wish: FeatureWish) -> None:
    """Every registered broker has to support the level, also one that is away. Level 0 is the absence of a feature."""
    ranges = {one.name: (one.min, one.max) for one in broker.features}
    least, most = ranges.get(wish.name, (0, 0))
    if not least <= wish.level <= most:
        raise InvalidUpdateVersion(
            f"Broker {broker.node_id} does not support level {wish.level} of {wish.name}, only {least} to {most}. "
            "Upgrade it, or unregister it if it is gone."
        )
