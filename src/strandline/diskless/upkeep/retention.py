"""Retention of diskless topics: which rules apply, and when the control plane enforces them.

Here: rules from the settings of topics, enforced in bounded steps. Not here: which rows a rule deletes (the control
plane), the deletion of objects that no row refers to any more (`cleaner`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from strandline.clock import Chance, Clock
from strandline.controlplane import LogTrimming, ProducerExpiry, RetentionRule
from strandline.crash import crash_point
from strandline.diskless.upkeep.loop import IsOnDuty, UpkeepLoop, UpkeepStatus, always_on_duty
from strandline.model import INT32_MAX, TopicIdPartition, TopicPartition

_RULES_PER_CALL: Final = 100
_PRODUCERS_PER_CALL: Final = 1000


class TopicRetention(NamedTuple):
    """The settings of a diskless topic that retention follows."""

    topic_id: UUID
    topic: str
    partitions: Collection[int]
    cleanup_policy: Collection[str]
    retention_ms: int
    retention_bytes: int


# All diskless topics of the cluster.
Topics: TypeAlias = Callable[[], Iterable[TopicRetention]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSummary:
    """The result of one round."""

    partitions: int = 0
    """Partitions that were examined."""
    rows_deleted: int = 0
    bytes_deleted: int = 0
    producers_expired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionStatus:
    """Counters since the start."""

    upkeep: UpkeepStatus
    rows_deleted: int
    bytes_deleted: int
    producers_expired: int


def retention_rules(topics: Iterable[TopicRetention]) -> Iterator[RetentionRule]:
    """A rule for each partition whose cleanup.policy has `delete`.

    Also for topics without a limit: an interrupted DeleteRecords leaves rows below the log start, which retention
    deletes.
    """
    for topic in topics:
        if "delete" not in topic.cleanup_policy:
            continue
        for partition in topic.partitions:
            key = TopicIdPartition(topic.topic_id, TopicPartition(topic.topic, partition))
            yield RetentionRule(key, topic.retention_ms, topic.retention_bytes)


class RetentionEnforcer:
    """Deletes old records, and the state of producers that have been silent for long.

    One call to the control plane covers a bounded number of partitions and rows. Between two calls it pauses for as
    long as the last one took: a backlog of millions of rows takes at most half of the database's time, however slow
    the database is.
    """

    def __init__(
        self,
        topics: Topics,
        trimming: LogTrimming,
        producers: ProducerExpiry,
        *,
        clock: Clock,
        chance: Chance,
        interval_ms: int,
        max_rows: int,
        producer_expiration_ms: int,
        is_on_duty: IsOnDuty = always_on_duty,
    ) -> None:
        self._topics, self._trimming, self._expiry, self._clock = topics, trimming, producers, clock
        self._max_rows = max_rows or INT32_MAX
        self._producer_expiration_ms = producer_expiration_ms
        self._upkeep = UpkeepLoop(
            "Retention of diskless topics", interval_ms=interval_ms, clock=clock, chance=chance, is_on_duty=is_on_duty
        )
        self._rows = self._bytes = self._producers = 0

    async def run(self) -> None:
        """Enforce retention until cancelled."""
        await self._upkeep.repeat(self.run_once)

    async def run_once(self) -> RetentionSummary:
        """Enforce it once, until nothing is left to delete. Raises SqlErrors; finished calls stay done."""
        rules = list(retention_rules(self._topics()))
        rows, size = self._rows, self._bytes
        left = rules
        while left:
            left = [rule for chunk in _chunks(left) for rule in await self._enforce(chunk)]
        producers = await self._expire_producers()
        return RetentionSummary(
            partitions=len(rules),
            rows_deleted=self._rows - rows,
            bytes_deleted=self._bytes - size,
            producers_expired=producers,
        )

    def status(self) -> RetentionStatus:
        return RetentionStatus(
            upkeep=self._upkeep.status(),
            rows_deleted=self._rows,
            bytes_deleted=self._bytes,
            producers_expired=self._producers,
        )

    async def _enforce(self, rules: Sequence[RetentionRule]) -> list[RetentionRule]:
        """One call; returns the rules that may have more to delete."""
        started = self._clock.monotonic()
        answers = await self._trimming.enforce_retention(rules, max_rows=self._max_rows)
        crash_point("diskless.retention.after_trim")
        self._rows += sum(trimmed.rows_deleted for trimmed in answers)
        self._bytes += sum(trimmed.bytes_deleted for trimmed in answers)
        await self._clock.sleep(self._clock.monotonic() - started)
        return [rule for rule, trimmed in zip(rules, answers, strict=True) if trimmed.rows_deleted >= self._max_rows]

    async def _expire_producers(self) -> int:
        silent_ms = self._producer_expiration_ms
        total, expired = 0, _PRODUCERS_PER_CALL
        while expired >= _PRODUCERS_PER_CALL:
            started = self._clock.monotonic()
            expired = await self._expiry.expire_producers(silent_ms=silent_ms, limit=_PRODUCERS_PER_CALL)
            total += expired
            self._producers += expired
            await self._clock.sleep(self._clock.monotonic() - started)
        return total


def _chunks(rules: Iterable[RetentionRule]) -> Iterator[list[RetentionRule]]:
    remaining = iter(rules)
    while chunk := list(islice(remaining, _RULES_PER_CALL)):
        yield chunk
