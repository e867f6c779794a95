"""Fetch, versions 4 to 18: long polls, incremental sessions, fairness over partitions.

Records leave as ranges of segment files; nothing is copied or decoded here. Known gaps: followers do not
replicate yet (replica ids are served as debug readers), no preferred read replica, no quotas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from strandline.errors import OffsetOutOfRange, StrandlineError
from strandline.log import FetchIsolation
from strandline.replication import Partition, ReplicaManager
from strandline.server.deadlines import Deadline, Deadlines
from strandline.server.exchange import Exchange
from strandline.server.fetch_sessions import FetchContext, FetchSessions, Place
from strandline.wire.errors import error_code_of
from strandline.wire.fetch_codec import (
    FIRST_WITH_TOPIC_IDS,
    FetchAnswer,
    FetchEntry,
    FetchRequest,
    read_fetch_request,
    write_fetch_response,
)

READ_COMMITTED: Final = 1


class FetchHandler:
    """Serves readers from the local logs of this broker."""

    def __init__(
        self,
        replicas: ReplicaManager,
        sessions: FetchSessions,
        deadlines: Deadlines,
        *,
        loop: asyncio.AbstractEventLoop,
        max_bytes: int,
    ) -> None:
        self.replicas = replicas
        self.loop = loop
        self.max_bytes = max_bytes
        self._sessions = sessions
        self._deadlines = deadlines

    def handle(self, frame: memoryview, position: int, exchange: Exchange, client_id: str | None) -> None:
        """Answer at once if there is enough to say, or when there is, or when the client's patience ends."""
        version = exchange.api_version
        request = read_fetch_request(frame, position, version)
        exchange.release_frame()
        try:
            context = self._sessions.open(request, uses_ids=version >= FIRST_WITH_TOPIC_IDS)
        except StrandlineError as error:
            exchange.respond(
                write_fetch_response(exchange.correlation_id, version, [], error_code=int(error_code_of(error)))
            )
            return
        poll = _Poll(self, exchange, request, context)
        if poll.answer_if_enough(is_last=request.max_wait_ms <= 0 or not context.places):
            return
        poll.watch()
        poll.deadline = self._deadlines.call_within(request.max_wait_ms / 1000, poll.expired)

    def find(self, entry: FetchEntry) -> Partition:
        """The partition an entry means, if this broker leads it in the epoch the client knows."""
        topic = entry.topic
        name = topic if isinstance(topic, str) else self.replicas.topic_name(topic)
        partition = self.replicas.find(name, entry.partition)
        partition.check_leader(entry.current_leader_epoch)
        return partition


class _Poll:
    """One Fetch request until it is answered."""

    __slots__ = (
        "_context",
        "_exchange",
        "_handler",
        "_is_answered",
        "_is_due",
        "_isolation",
        "_request",
        "_watched",
        "deadline",
    )

    def __init__(self, handler: FetchHandler, exchange: Exchange, request: FetchRequest, context: FetchContext) -> None:
        self._handler = handler
        self._exchange = exchange
        self._request = request
        self._context = context
        self._watched: list[Partition] = []
        self._is_answered = False
        self._is_due = False
        self.deadline: Deadline | None = None
        """When the client's patience ends, once it waits."""
        if request.replica_id >= 0:
            self._isolation = FetchIsolation.LOG_END
        elif request.isolation_level == READ_COMMITTED:
            self._isolation = FetchIsolation.TXN_COMMITTED
        else:
            self._isolation = FetchIsolation.HIGH_WATERMARK

    # Waiting

    def watch(self) -> None:
        """Be notified when any of the partitions moves."""
        for place in self._context.places:
            try:
                partition = self._handler.find(place.entry)
            except StrandlineError:
                continue  # its error was not news to this client; another partition may still bring data
            partition.watch(self)
            self._watched.append(partition)

    def notify(self) -> None:
        """A partition moved. Look at all of them once this turn of the loop is through with its appends."""
        if not self._is_due and not self._is_answered:
            self._is_due = True
            self._handler.loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_due = False
        if self._is_answered or self._exchange.connection.is_closed:
            self._stop_waiting()
            return
        if self._request.min_bytes > 1 and not self._is_worth_reading():
            return
        self.answer_if_enough(is_last=False)

    def _is_worth_reading(self) -> bool:
        """Are there min.bytes to be had, or has a partition left us? Cheaper than reading."""
        available = 0
        for partition, place in zip(self._watched, self._context.places, strict=False):
            entry = place.entry
            if not partition.is_leader or partition.log.log_start_offset > entry.fetch_offset:
                return True
            available += min(partition.log.available_bytes(entry.fetch_offset, self._isolation), entry.max_bytes)
        return available >= self._request.min_bytes or len(self._watched) != len(self._context.places)

    def expired(self) -> None:
        """The client's max.wait is over."""
        if not self._is_answered:
            self.answer_if_enough(is_last=True)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        for partition in self._watched:
            partition.unwatch(self)
        self._watched.clear()

    # Answering

    def answer_if_enough(self, *, is_last: bool) -> bool:
        """Read every partition; answer if there is min.bytes, an error or no more time. True if answered."""
        answers, size, has_news = self._read_all()
        if not (is_last or has_news or size >= self._request.min_bytes):
            return False
        self._is_answered = True
        self._stop_waiting()
        exchange = self._exchange
        exchange.respond(
            write_fetch_response(
                exchange.correlation_id,
                exchange.api_version,
                _grouped(self._context.select(answers)),
                session_id=self._context.session_id,
            )
        )
        return True

    def _read_all(self) -> tuple[list[FetchAnswer], int, bool]:
        """The answers, their bytes, and whether one of them must not wait (an error, a diverging epoch)."""
        remaining = min(self._request.max_bytes, self._handler.max_bytes)
        answers: list[FetchAnswer] = []
        size = 0
        must_answer = False
        may_skip = not self._context.is_full and self._isolation is not FetchIsolation.LOG_END
        for place in self._context.places:
            if may_skip and place.is_idle:
                continue
            entry = place.entry
            # The first batch of the whole response may exceed every limit, so that a reader never gets stuck.
            answer = self._read(place, max(min(entry.max_bytes, remaining), 0), min_one_message=size == 0)
            answers.append(answer)
            if answer.records is not None:
                size += answer.records.length
                remaining -= answer.records.length
            must_answer = must_answer or answer.error_code != 0 or answer.diverging_epoch is not None
        return answers, size, must_answer

    def _read(self, place: Place, max_bytes: int, *, min_one_message: bool) -> FetchAnswer:
        entry = place.entry
        try:
            partition = self._handler.find(entry)
            place.found(partition)
            if entry.last_fetched_epoch >= 0:
                diverging = _diverging_epoch(partition, entry)
                if diverging is not None:
                    return FetchAnswer(entry.topic, entry.partition, diverging_epoch=diverging)
            result = partition.read(
                entry.fetch_offset, max_bytes, isolation=self._isolation, min_one_message=min_one_message
            )
        except StrandlineError as error:
            return FetchAnswer(entry.topic, entry.partition, int(error_code_of(error)))
        records = result.records
        return FetchAnswer(
            entry.topic,
            entry.partition,
            0,
            result.high_watermark,
            result.last_stable_offset,
            result.log_start_offset,
            result.aborted_transactions,
            records if records is not None and records.length else None,
        )


def _diverging_epoch(partition: Partition, entry: FetchEntry) -> tuple[int, int] | None:
    """Where the reader's history leaves ours (KIP-595), or None if it does not. Raises OffsetOutOfRange."""
    epoch, end_offset = partition.log.end_offset_for_epoch(entry.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or entry.fetch_offset < partition.log.log_start_offset:
        raise OffsetOutOfRange(
            f"{partition.topic_partition} does not know epoch {entry.last_fetched_epoch} at {entry.fetch_offset}"
        )
    if epoch < entry.last_fetched_epoch or end_offset < entry.fetch_offset:
        return epoch, end_offset
    return None


def _grouped(answers: Sequence[FetchAnswer]) -> Sequence[FetchAnswer]:
    """Answers of one topic side by side: sessions reorder partitions, the wire groups them by topic."""
    topics: dict[str | bytes, list[FetchAnswer]] = {}
    for answer in answers:
        topics.setdefault(answer.topic, []).append(answer)
    if len(topics) <= 1:
        return answers
    return [answer for rows in topics.values() for answer in rows]
