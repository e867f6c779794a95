"""What the retention of diskless topics enforces, and whom it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from strandline.config import TopicConfig
from strandline.controlplane import LogTrimming, RetentionRule, Trimmed
from strandline.diskless.upkeep import TopicRetention
from strandline.metadata import TopicImage

if TYPE_CHECKING:
    from strandline.diskless.reader import DisklessReader


class NotifyingTrimming:
    """`LogTrimming` that also notifies the reader of this broker of deleted records."""

    def __init__(self, trimming: LogTrimming, reader: DisklessReader) -> None:
        self._trimming, self._reader = trimming, reader

    async def enforce_retention(self, rules: Sequence[RetentionRule], *, max_rows: int) -> Sequence[Trimmed]:
        answers = await self._trimming.enforce_retention(rules, max_rows=max_rows)
        for rule, trimmed in zip(rules, answers, strict=True):
            if trimmed.rows_deleted:
                self._reader.log_start_moved(rule.partition, trimmed.log_start_offset)
        return answers


def retention_of(topics: Iterable[TopicImage], topic_config: Callable[[str], TopicConfig]) -> Iterator[TopicRetention]:
    """The retention of these topics, by their settings now."""
    for topic in topics:
        config = topic_config(topic.name)
        yield TopicRetention(
            topic.topic_id,
            topic.name,
            range(len(topic.partitions)),
            config.cleanup_policy,
            config.retention_ms,
            config.retention_bytes,
        )
