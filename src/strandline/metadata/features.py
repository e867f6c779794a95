"""Features: what changes the behaviour of the whole cluster at once, and can be switched by UpdateFeatures.

One table says which features this version knows, in which range, and which level a cluster has whose metadata has no
record of them. What clients are told, and what UpdateFeatures may change, are those that `ANNOUNCED_FEATURES` names.

`metadata.version` says which fields the records of the metadata may have. Its numbers are Kafka's, so that its tools
can name them, and mean what they mean there: with 4.0-IV1 partitions have eligible leader replicas (KIP-966). Kafka's
higher levels are about records that Strandline does not write, and are not offered. Here a level means more than there:

- 22, 4.0-IV0: the records of releases without replication. No topic gets a second replica;
- 23, 4.0-IV1 (`REPLICATED`): other replica lists, eligible leaders and log directories may be written.

A new cluster begins at the newest level. One that is upgraded broker by broker stays at 22 until UpdateFeatures raises
it, even if all its brokers know 23: while it does, each of them can still go back to the release before. UpdateFeatures
refuses as long as a registered broker does not know the level, and from then on such a broker cannot register. The
level never goes down, because records with the new fields stay in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from strandline.metadata.image import FeatureSupport, MetadataImage

TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
METADATA_VERSION: Final = "metadata.version"

UNREPLICATED: Final = 22
REPLICATED: Final = 23


class FeatureRange(NamedTuple):
    """The levels that this version supports, and the one of a cluster that never chose."""

    min: int
    max: int
    default: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.min <= level <= self.max


SUPPORTED_FEATURES: Final[Mapping[str, FeatureRange]] = MappingProxyType(
    {
        GROUP_VERSION: FeatureRange(0, 1, default=1),
        METADATA_VERSION: FeatureRange(UNREPLICATED, REPLICATED, default=UNREPLICATED),
        SHARE_VERSION: FeatureRange(0, 1, default=1),
        TRANSACTION_VERSION: FeatureRange(0, 2, default=2),
    }
)
ANNOUNCED_FEATURES: Final[tuple[str, ...]] = (GROUP_VERSION, METADATA_VERSION, SHARE_VERSION, TRANSACTION_VERSION)

FIRST_LEVELS: Final[Mapping[str, int]] = MappingProxyType({METADATA_VERSION: REPLICATED})
"""The levels that a new cluster begins with, where they are not those of a cluster that never chose."""

OWN_SUPPORT: Final = tuple(FeatureSupport(name, known.min, known.max) for name, known in SUPPORTED_FEATURES.items())
"""What a broker of this version says of itself when it registers."""


def announced_features() -> Mapping[str, FeatureRange]:
    """The features that clients may rely on and administrators may switch."""
    return {name: SUPPORTED_FEATURES[name] for name in ANNOUNCED_FEATURES}


def finalized_level(image: MetadataImage, name: str) -> int:
    """The level of a supported feature that holds in the cluster."""
    return image.administered.feature_levels.get(name, SUPPORTED_FEATURES[name].default)


def may_replicate(image: MetadataImage) -> bool:
    """True if all brokers know replicas: partitions may have several, and records the fields that those need."""
    return finalized_level(image, METADATA_VERSION) >= REPLICATED
