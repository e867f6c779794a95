"""One Fetch request until it is answered: reading, waiting for more, and reads that memory cannot answer.

Partitions are read from memory or from files where that is possible at once. The others (`PendingRead`) are read
together, once, and the request waits for them; records that come too late are in a cache for the next request.

How long the request waits follows from the pending reads. Some bring a limit of their own, whatever the client says
(for remote storage that is remote.fetch.max.wait.ms, as in Kafka); for the others it is the client's max.wait.ms, and
some more if there would be nothing else to answer with. Results that end the wait are sent however few they are.

A pending read that fails because a store or the database is away does not end the wait: Apache Kafka's consumer would
ask again at once, hundreds of times a second. It is read again now and then, and the error is sent with the answer.

Records in memory count against the memory of answers (`server.memory`) from the moment they are read for until they are
sent. Without room the request waits for some, and is answered without records if its time is over.
"""

from __future__ import annotations

import logging
from typing import Final

from strandline.errors import KafkaStorageError, StrandlineError
from strandline.hybrid.layout import Tier
from strandline.hybrid.reading import PendingRead
from strandline.reads import FetchIsolation, ReadResult
from strandline.records.slices import MemorySlices
from strandline.server.deadlines import Deadline
from strandline.server.exchange import Exchange
from strandline.server.fetch_sessions import FetchContext, Place
from strandline.server.handlers.fetch.answers import (
    answer_with,
    diverging_epoch,
    grouped,
    isolation_of,
    length_of,
    may_have,
    refusal,
)
from strandline.server.handlers.fetch.counting import count_errors, count_reads
from strandline.server.handlers.fetch.owner import PollOwner
from strandline.server.handlers.fetch.sharing import SharedAnswer, SharedAnswers, ShareKey
from strandline.server.handlers.fetch.watching import PollWatch
from strandline.server.memory import ReadGrant
from strandline.wire.fetch_codec import FetchAnswer, FetchRequest, write_fetch_response

logger = logging.getLogger(__name__)

SLOW_READ_SECONDS: Final = 10.0
READ_AGAIN_SECONDS: Final = 0.5


class FetchPoll:
    """One Fetch request until it is answered."""

    __slots__ = (
        "_context",
        "_ends_wait",
        "_exchange",
        "_grant",
        "_handler",
        "_has_missed_news",
        "_is_answered",
        "_is_due",
        "_is_reading",
        "_isolation",
        "_kept",
        "_max_wait_s",
        "_reads_again",
        "_request",
        "_times_expired",
        "_troubles",
        "_watch",
        "deadline",
    )

    def __init__(self, handler: PollOwner, exchange: Exchange, request: FetchRequest, context: FetchContext) -> None:
        self._handler = handler
        self._exchange = exchange
        self._request = request
        self._context = context
        self._watch = PollWatch()
        self._is_answered = False
        self._is_due = False
        self._is_reading = False
        self._has_missed_news = False
        self._ends_wait = False
        """Whether some of the results end the wait, or will: then `fetch.min.bytes` does not matter."""
        self._max_wait_s: float | None = None
        """How long the pending reads may take, if one of them has a limit."""
        self._kept: dict[Place, ReadResult | StrandlineError] = {}
        """Results of pending reads, and those that end the wait: not read again until they are sent or outdated."""
        self._grant = ReadGrant(handler.memory)
        self._times_expired = 0
        self._troubles: dict[Place, KafkaStorageError] = {}
        """Pending reads that failed and are tried again."""
        self._reads_again: Deadline | None = None
        """When pending reads that failed are tried again."""
        self.deadline: Deadline | None = None
        """When the wait ends, once the poll waits."""
        self._isolation = isolation_of(request)

    # Waiting

    @property
    def patience_seconds(self) -> float:
        """How long to wait before `expired`."""
        if self._is_reading and self._max_wait_s is not None:
            return self._max_wait_s
        return self._request.max_wait_ms / 1000

    def watch(self) -> None:
        """Be notified when any of the partitions moves."""
        self._watch.start(self, self._context)
        self._exchange.on_closed = self._left

    def _left(self) -> None:
        """The client is gone. What it asked for is not kept until its max.wait.ms is over, which may be days."""
        if not self._is_reading:
            self._is_answered = True
            self._stop_waiting()

    def notify(self) -> None:
        """A partition moved. Look at all of them once this turn of the loop is through with its appends."""
        if not self._is_due and not self._is_answered:
            self._is_due = True
            self._handler.look_soon(self)

    def look(self, shared: SharedAnswers) -> None:
        """Answer if there is enough now, with what another poll has read if it wanted the same."""
        self._is_due = False
        if not self._is_open():
            self._stop_waiting()
            return
        if self._is_reading:
            self._has_missed_news = True
            return
        if not self._context.look_again():
            self.expired()
            return
        key = self._share_key()
        if key is not None:
            known = shared.get(key)
            if known is not None and self._answer_shared(known):
                return
        if self._request.min_bytes > 1 and not self._has_trouble() and not self._may_have_enough():
            return
        self._troubles = {place: one for place, one in self._kept.items() if isinstance(one, KafkaStorageError)}
        self._forget_kept()  # there may be more now
        if not self.answer_if_enough(is_last=False, shared=shared, key=key):
            self.watch()

    def _may_have_enough(self) -> bool:
        return may_have(self._request.min_bytes, self._watch.found, self._context.places, self._isolation)

    def _share_key(self) -> ShareKey | None:
        """What an answer depends on, if others may want the same."""
        if len(self._context.places) != 1 or self._kept:
            return None
        limit = min(self._request.max_bytes, self._handler.max_bytes)
        return ShareKey(self._context.places[0].entry, limit, self._isolation, self._exchange.api_version)

    def _answer_shared(self, known: SharedAnswer) -> bool:
        """Answer with what was read for all. False if that is too little, or takes memory of which there is none."""
        if known.length < self._request.min_bytes or self._handler.memory.is_full:
            return False
        if not self._context.sends(self._context.places[0], known.answer):
            return False
        self._is_answered = True
        self._stop_waiting()
        if self._isolation is not FetchIsolation.LOG_END:
            count_reads(self._handler.partitions.traffic, (known.answer,))
        known.send(self._exchange, self._context.session_id)
        return True

    def expired(self) -> None:
        """The wait is over. A pending read without a limit of its own gets some more time: else requests repeat it."""
        if self._is_answered:
            return
        self._context.look_at_all()
        self._times_expired += 2 if self._ends_wait else 1
        if self._is_reading and self._times_expired == 1:
            self.deadline = self._handler.call_within(SLOW_READ_SECONDS, self.expired)
        self.answer_if_enough(is_last=True)

    def _is_open(self) -> bool:
        return not (self._is_answered or self._exchange.connection.is_closed)

    def _stop_waiting(self) -> None:
        self._exchange.on_closed = None
        if self.deadline is not None:
            self.deadline.cancel()
        if self._reads_again is not None:
            self._reads_again.cancel()
        self._watch.stop(self, self._context)
        self._handler.memory.unwatch(self)
        self._forget_kept()

    def _forget_kept(self) -> None:
        self._kept.clear()
        self._grant.give_back()

    # Answering

    def answer_if_enough(
        self, *, is_last: bool, shared: SharedAnswers | None = None, key: ShareKey | None = None
    ) -> bool:
        """Read every partition; answer if there is min.bytes, an error or no more time. True if answered.

        What is read for `key` is shared with others.
        """
        answers, size, memory, must_answer, slow = self._read_all()
        is_enough = must_answer or size >= (1 if self._ends_wait else self._request.min_bytes)
        if slow:
            if not self._is_reading and not self._times_expired:
                self._read_slowly(slow, size)
            may_go = not self._ends_wait and (must_answer or (size > 0 and is_enough))
            if not is_last or (self._is_reading and self._times_expired < 2 and not may_go):
                return False
            answers += [self._unread(place) for place, _ in slow]
        elif not (is_last or is_enough):
            self._wait_on()
            return False
        has_errors = must_answer or bool(slow) or self._has_trouble()
        if shared is not None and key is not None and len(answers) == 1 and not has_errors:
            known = shared.add(key, answers[0])
            if known is not None and self._answer_shared(known):
                return True
        self._is_answered = True
        self._stop_waiting()
        if self._isolation is not FetchIsolation.LOG_END:
            count_reads(self._handler.partitions.traffic, answers)
        exchange = self._exchange
        if has_errors:
            count_errors(exchange, answers)
        exchange.respond(
            write_fetch_response(
                exchange.correlation_id,
                exchange.api_version,
                grouped(self._context.select(answers)),
                session_id=self._context.session_id,
            ),
            memory=memory,
        )
        return True

    def _wait_on(self) -> None:
        """There are fewer than min.bytes. They are kept until the wait is over."""
        if self._kept:
            self._grant.give_back_all_but(sum(map(length_of, self._kept.values())))
        if self._has_trouble():
            if self._reads_again is not None:
                self._reads_again.cancel()
            self._reads_again = self._handler.call_within(READ_AGAIN_SECONDS, self.notify)
        if self._has_missed_news:
            self._has_missed_news = False
            self.notify()

    def _has_trouble(self) -> bool:
        """Whether a pending read has failed for a reason that may pass."""
        return bool(self._kept) and any(isinstance(result, KafkaStorageError) for result in self._kept.values())

    def _read_all(self) -> tuple[list[FetchAnswer], int, int, bool, list[tuple[Place, PendingRead]]]:
        """The answers, their bytes, how many of these are in memory, whether one answer must not wait (an error
        that will not pass, a diverging epoch), and the pending reads."""
        remaining = min(self._request.max_bytes, self._handler.max_bytes)
        kept_size = sum(map(length_of, self._kept.values())) if self._kept else 0
        remaining -= kept_size
        self._watch.read_again()
        answers: list[FetchAnswer] = []
        slow: list[tuple[Place, PendingRead]] = []
        size = memory = 0
        must_answer = False
        # A fetch with max.wait.ms=0 registers no watcher: without one, the known end of a diskless partition grows old.
        may_wait = self._request.max_wait_ms > 0
        may_skip = may_wait and not self._context.is_full and self._isolation is not FetchIsolation.LOG_END
        for place in self._context.places:
            if may_skip:
                standing = place.idle_partition()
                if standing is not None:
                    place.rest(standing)
                    self._watch.note(place, standing)
                    continue
            entry = place.entry
            # The first batch of the whole response may exceed every limit, so that a reader never gets stuck.
            min_one_message = size == 0 and kept_size == 0
            kept = self._kept.get(place)
            limit = max(min(entry.max_bytes, remaining), 0)
            answer = self._read(place, kept, limit, memory, min_one_message=min_one_message)
            if not isinstance(answer, FetchAnswer):
                slow.append((place, answer))
                continue
            answers.append(answer)
            if answer.records is not None:
                length = answer.records.length
                size += length
                if type(answer.records) is MemorySlices:
                    memory += length
                if kept is None:
                    remaining -= length
            is_refused = answer.error_code != 0 and not isinstance(kept, KafkaStorageError)
            must_answer = must_answer or is_refused or answer.diverging_epoch is not None
        return answers, size, memory, must_answer, slow

    def _read(
        self,
        place: Place,
        kept: ReadResult | StrandlineError | None,
        max_bytes: int,
        memory: int,
        *,
        min_one_message: bool,
    ) -> FetchAnswer | PendingRead:
        entry = place.entry
        try:
            partition = self._handler.find(entry)
            place.found(partition)
            self._watch.note(place, partition)
            if entry.last_fetched_epoch >= 0:
                diverging = diverging_epoch(partition, entry)
                if diverging is not None:
                    return answer_with(entry, partition.newest.without_records())._replace(diverging_epoch=diverging)
            result = kept
            if result is None:
                extent = partition.extent_of(entry.fetch_offset)
                if extent.tier is not Tier.LOCAL:  # its records stay in memory until they are sent
                    room = self._handler.memory.room_beside(memory, self)
                    max_bytes, min_one_message = min(max_bytes, room), min_one_message and room > 0
                found = extent.engine.read_now(
                    entry.fetch_offset, max_bytes, isolation=self._isolation, min_one_message=min_one_message
                )
                if isinstance(found, ReadResult):
                    result = found
                else:
                    self._limit_wait(found.max_wait_s)
                    if isinstance(found, PendingRead):
                        return found
                    result = self._keep(place, found.result)
            if isinstance(result, StrandlineError):
                raise result
        except StrandlineError as error:
            return refusal(entry, error)
        return answer_with(entry, result)

    def _limit_wait(self, max_wait_s: float | None) -> None:
        if max_wait_s is not None:
            self._ends_wait = True
            self._max_wait_s = max_wait_s

    def _keep(self, place: Place, result: ReadResult | StrandlineError) -> ReadResult | StrandlineError:
        """Do not read a final result again: its tier would count it again, and charge its quota.

        One without records is not kept: when the wait is over, the quota may allow some.
        """
        if isinstance(result, StrandlineError) or result.records is not None:
            self._kept[place] = result
        return result

    # Pending reads

    def _read_slowly(self, slow: list[tuple[Place, PendingRead]], size: int) -> None:
        limit = min(self._request.max_bytes, self._handler.max_bytes)
        granted = self._grant.take(max(limit - size, 1))
        if not granted:
            self._handler.memory.watch(self)
            return
        self._is_reading = True
        self._handler.start(self._read_and_answer(slow, granted, min_one_message=size == 0))

    async def _read_and_answer(
        self, slow: list[tuple[Place, PendingRead]], max_bytes: int, *, min_one_message: bool
    ) -> None:
        """Read, then look at all partitions again. If the client is gone by then, the records are cached for others."""
        try:
            results = await self._handler.partitions.read(
                [request for _, request in slow],
                max_bytes=max_bytes,
                min_one_message=min_one_message,
                is_wanted=self._is_open,
            )
        except Exception:  # an unforeseen failure of a reader ends this connection only
            logger.exception("a Fetch that reads from an object store failed")
            self._is_answered = True
            self._stop_waiting()
            self._exchange.abort("reading diskless or remote records failed")
            return
        self._is_reading = False
        if not self._is_open():
            self._stop_waiting()
            return
        self._kept.update((place, result) for (place, _), result in zip(slow, results, strict=True))
        self.answer_if_enough(is_last=self._times_expired > 0)

    def _unread(self, place: Place) -> FetchAnswer:
        """The answer for a partition whose records did not come in time: why, if an earlier attempt has told."""
        entry = place.entry
        try:
            if place in self._troubles:
                raise self._troubles[place]
            return answer_with(entry, self._handler.find(entry).newest.without_records())
        except StrandlineError as error:
            return refusal(entry, error)
