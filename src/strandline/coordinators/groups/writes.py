"""Writing to the log of a shard: what is written together becomes one append, and counts when it is committed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from strandline.clock import Clock
from strandline.coordinators.groups.log import GroupLog, LogRecord
from strandline.errors import (
    CoordinatorNotAvailable,
    InvalidFetchSize,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    StrandlineError,
    UnknownTopicOrPartition,
)

_log = logging.getLogger(__name__)

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]
KeyValue: TypeAlias = tuple[bytes, bytes | None]

# Room for the batch header and the varints of each record.
_BATCH_OVERHEAD = 128
_RECORD_OVERHEAD = 24


class Written(NamedTuple):
    """How a write ended: the offset of its first record, or why it is not in the log."""

    error: StrandlineError | None
    base_offset: int = -1


Done: TypeAlias = Callable[[Written], None]


class RecordSink(Protocol):
    """Takes the records of one decision.

    Writes are applied in the order of the calls, each whole or not at all. `done` is called exactly once, later, from
    the event loop, in the order of the calls. A write without records is a fence: it is done when all before it are.
    """

    def write(self, records: Sequence[KeyValue], done: Done) -> None: ...


def client_error(error: StrandlineError) -> StrandlineError:
    """What a group client is told when its write failed for a reason of the log's."""
    if isinstance(error, UnknownTopicOrPartition | NotEnoughReplicas | NotEnoughReplicasAfterAppend | RequestTimedOut):
        return CoordinatorNotAvailable(f"the group's log could not be written: {error}")
    if isinstance(error, NotLeaderOrFollower | KafkaStorageError):
        return NotCoordinator(f"this broker no longer leads the group's log: {error}")
    if isinstance(error, MessageTooLarge | RecordListTooLarge | InvalidFetchSize):
        return StrandlineError(f"the group's state does not fit into one record: {error}")
    return error


@dataclass(slots=True)
class _Write:
    records: Sequence[LogRecord]
    size: int
    done: Done


class LogWriter:
    """The sink of one partition. While an append is under way the next writes gather for the one after it."""

    def __init__(self, partition: int, log: GroupLog, clock: Clock, spawn: Spawn) -> None:
        self._partition, self._log, self._clock, self._spawn = partition, log, clock, spawn
        self._queue: deque[_Write] = deque()
        self._under_way: list[_Write] = []
        self._is_running = False
        self._closed: StrandlineError | None = None

    def write(self, records: Sequence[KeyValue], done: Done) -> None:
        if self._closed is not None:
            done(Written(self._closed))
            return
        now = self._clock.now_ms()
        stamped = [LogRecord(key, value, now) for key, value in records]
        size = sum(len(key) + len(value or b"") + _RECORD_OVERHEAD for key, value in records)
        self._queue.append(_Write(stamped, size, done))
        if not self._is_running:
            self._is_running = True
            self._spawn(self._run())

    def close(self, error: StrandlineError) -> None:
        """Fail everything that is not committed yet, and everything that comes."""
        self._closed = error
        abandoned = [*self._under_way, *self._queue]
        self._under_way = []
        self._queue.clear()
        for write in abandoned:
            write.done(Written(error))

    async def _run(self) -> None:
        try:
            while self._queue:
                self._under_way = self._next_append()
                outcome = await self._append([record for write in self._under_way for record in write.records])
                finished, self._under_way = self._under_way, []
                self._finish(finished, outcome)
        finally:
            self._is_running = False

    def _next_append(self) -> list[_Write]:
        """As many writes as fit into one batch; a write is never split."""
        limit = self._log.max_batch_bytes(self._partition) - _BATCH_OVERHEAD
        taken = [self._queue.popleft()]
        size = taken[0].size
        while self._queue and size + self._queue[0].size <= limit:
            size += self._queue[0].size
            taken.append(self._queue.popleft())
        return taken

    async def _append(self, records: list[LogRecord]) -> Written:
        if not records:
            return Written(None)
        try:
            return Written(None, await self._log.append(self._partition, records))
        except StrandlineError as error:
            _log.warning("group log %d did not take %d records: %s", self._partition, len(records), error)
            return Written(error)
        except Exception as error:  # noqa: BLE001 - those who wait for the append must hear of it
            _log.exception("group log %d failed", self._partition)
            return Written(StrandlineError(f"the group's log failed: {error}"))

    @staticmethod
    def _finish(finished: list[_Write], outcome: Written) -> None:
        offset = outcome.base_offset
        for write in finished:
            # A fence is not part of the append: it only stands behind it.
            written = Written(outcome.error, offset) if write.records else Written(None)
            offset += len(write.records)
            try:
                write.done(written)
            except Exception:  # noqa: BLE001 - the writes of other groups in the same append must hear of theirs
                _log.exception("a group could not take note of its write")
