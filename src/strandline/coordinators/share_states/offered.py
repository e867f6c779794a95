"""Whether the cluster has share groups: `share.version` switches them, and nothing else does, as in Kafka.

The requests of members and of administrators are refused without them. Those of brokers about the state of share
partitions are not: a broker may hear of the switch later than another.
"""

from __future__ import annotations

from typing import Final

from strandline.errors import UnsupportedVersion
from strandline.metadata import MetadataImage, finalized_level
from strandline.metadata.features import SHARE_VERSION

_FIRST_WITH_SHARE_GROUPS: Final = 1


def has_share_groups(image: MetadataImage) -> bool:
    """Whether the level of the feature allows share groups."""
    return finalized_level(image, SHARE_VERSION) >= _FIRST_WITH_SHARE_GROUPS


def check_share_groups(image: MetadataImage) -> None:
    """Raises UnsupportedVersion."""
    if not has_share_groups(image):
        raise UnsupportedVersion("The feature share.version has level 0: there are no share groups.")
