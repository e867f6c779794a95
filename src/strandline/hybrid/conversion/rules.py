"""What the settings of topics say about conversion. Pure."""

from __future__ import annotations

from typing import Final

from strandline.config import TieringSettings, TopicConfig
from strandline.controlplane.conversion import TieringRule
from strandline.hybrid.conversion.ranges import SegmentSizes
from strandline.metadata import TopicImage

_BY_DEFAULT: Final = -2


def local_retention_ms(config: TopicConfig, settings: TieringSettings) -> int:
    """After how long batches of a diskless topic may be converted; -1: never by their age.

    For tiered topics -2 means retention.ms. A diskless topic would never be converted then: its batches would expire
    first.
    """
    given = config.local_retention_ms
    return settings.inkless_tiering_default_local_retention_ms if given == _BY_DEFAULT else given


def rule_of(topic: TopicImage, config: TopicConfig, settings: TieringSettings) -> TieringRule:
    """When batches of a topic may be converted."""
    return TieringRule(topic.topic_id, local_retention_ms(config, settings))


def sizes_of(config: TopicConfig, settings: TieringSettings) -> SegmentSizes:
    """How large segments of a topic are to be: as its copied ones would be, within the limits of the pipeline."""
    return SegmentSizes(
        min_bytes=settings.inkless_tiering_min_segment_bytes,
        max_bytes=min(settings.inkless_tiering_max_segment_bytes, config.segment_bytes),
        max_wait_ms=settings.inkless_tiering_merger_max_wait_ms,
    )
