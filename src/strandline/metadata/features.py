"""Features: what changes the behaviour of the whole cluster at once, and can be switched by UpdateFeatures.

One table says which features this version knows, in which range, and which level a cluster has whose metadata has no
record of them. What clients are told, and what UpdateFeatures may change, are those that `ANNOUNCED_FEATURES` names.

`metadata.version` is not among them: it is the version of KRaft's records, which Strandline does not write.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from strandline.metadata.image import FeatureSupport, MetadataImage

TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"


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
        SHARE_VERSION: FeatureRange(0, 1, default=1),
        TRANSACTION_VERSION: FeatureRange(0, 2, default=2),
    }
)
ANNOUNCED_FEATURES: Final[tuple[str, ...]] = (GROUP_VERSION, SHARE_VERSION, TRANSACTION_VERSION)


OWN_SUPPORT: Final = tuple(FeatureSupport(name, known.min, known.max) for name, known in SUPPORTED_FEATURES.items())
"""What a broker of this version says of itself when it registers."""


def announced_features() -> Mapping[str, FeatureRange]:
    """The features that clients may rely on and administrators may switch."""
    return {name: SUPPORTED_FEATURES[name] for name in ANNOUNCED_FEATURES}


def finalized_level(image: MetadataImage, name: str) -> int:
    """The level of a supported feature that holds in the cluster."""
    return image.administered.feature_levels.get(name, SUPPORTED_FEATURES[name].default)
