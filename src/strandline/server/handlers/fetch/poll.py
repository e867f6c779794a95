"""One Fetch request until it is answered: looks at its places, waits for more, and waits for reads.

The states are in `states`. A look reads what can be read at once. If that is too little, the request waits for news and
looks again. If memory cannot answer for some places (`PendingRead`), these are read together while the request waits;
what was found at once is held meanwhile. Records that come too late are in a cache for the next request.

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
from collections.abc import Mapping
from typing import Final

from strandline.hybrid.reading import PendingRead
from strandline.reads import FetchIsolation
from strandline.server.deadlines import Deadline
from strandline.server.exchange import Exchange
from strandline.server.fetch_sessions import FetchContext, Place
from strandline.server.handlers.fetch.answers import grouped
from strandline.server.handlers.fetch.counting import count_errors, count_reads
from strandline.server.handlers.fetch.findings import Findings
from strandline.server.handlers.fetch.held import ReadBasis
from strandline.server.handlers.fetch.owner import PollOwner
from strandline.server.handlers.fetch.places import PlaceReads
from strandline.server.handlers.fetch.sharing import SharedAnswer, SharedAnswers, ShareKey
from strandline.server.handlers.fetch.states import MOVES, PollState
from strandline.wire.fetch_codec import FetchRequest, write_fetch_response

logger = logging.getLogger(__name__)

SLOW_READ_SECONDS: Final = 10.0
READ_AGAIN_SECONDS: Final = 0.5

# An attribute of an enumeration costs as much as a call.
_LOOKING: Final = PollState.LOOKING
_WAITING: Final = PollState.WAITING
_WOKEN: Final = PollState.WOKEN
_READING: Final = PollState.READING
_OVERDUE: Final = PollState.OVERDUE
_LAST_LOOK: Final = PollState.LAST_LOOK
_ANSWERED: Final = PollState.ANSWERED
_ABANDONED: Final = PollState.ABANDONED
_LOG_END: Final = FetchIsolation.LOG_END


class FetchPoll:
    """See the module. A `Watcher` of its partitions and of the memory for answers. Belongs to the event loop."""

    __slots__ = (
        "_context",
        "_deadline",
        "_exchange",
        "_has_news",
        "_owner",
        "_places",
        "_reads_again",
        "_request",
        "_state",
    )

    def __init__(self, owner: PollOwner, exchange: Exchange, request: FetchRequest, context: FetchContext) -> None:
        self._owner = owner
        self._exchange = exchange
        self._request = request
        self._context = context
        self._places = PlaceReads(owner, request, context)
        self._state = _LOOKING
        self._has_news = False
        """News came while it was not waiting: it looks again before it waits."""
        self._deadline: Deadline | None = None
        """When the wait ends, once there is one."""
        self._reads_again: Deadline | None = None
        """When pending reads that failed are tried again."""

    @property
    def state(self) -> PollState:
        """How far it is."""
        return self._state

    def _enter(self, state: PollState) -> None:
        if state not in MOVES[self._state]:
            raise RuntimeError(f"A Fetch request cannot go from {self._state.name} to {state.name}.")
        self._state = state

    # Looking

    def begin(self) -> None:
        """Answer at once if there are min.bytes, or no time to wait for them; else when there are."""
        request, context = self._request, self._context
        findings = self._places.look(self)
        if request.max_wait_ms > 0 and (context.places or context.is_by_news):
            if self._go_on(findings):
                return
        elif not (findings.pending and self._begin_reads(findings)):
            self._answer(findings)
            return
        elif self._is_worth_sending(findings):
            self._enter(_LAST_LOOK)
            self._answer(findings)
            return
        self._deadline = self._owner.call_within(self._patience_seconds(), self.expired)

    def look(self, shared: SharedAnswers) -> None:
        """Answer if there is enough now, with what another poll has read if it wanted the same."""
        if self._state is not _WOKEN:  # answered in this turn of the loop
            return
        if self._exchange.connection.is_closed:
            self._left()
            return
        if not self._context.look_again():
            self.expired()
            return
        self._enter(_LOOKING)
        self._has_news = False
        key = self._share_key()
        if key is not None:
            known = shared.get(key)
            if known is not None and self._answer_shared(known):
                return
        min_bytes = self._request.min_bytes
        if min_bytes > 1 and not self._places.may_have(min_bytes):
            self._enter(_WAITING)
            return
        held = self._places.held
        if held.answers or held.troubles:
            held.drop_with_news()
        self._go_on(self._places.look(self), shared, key)

    def _go_on(self, findings: Findings, shared: SharedAnswers | None = None, key: ShareKey | None = None) -> bool:
        """After a look: answer, or wait for reads or for news. True if answered."""
        if findings.pending:
            if not self._begin_reads(findings):
                self._wait(findings)
            return False
        if findings.is_enough(1 if self._places.max_wait_s is not None else self._request.min_bytes):
            self._answer(findings, shared, key)
            return True
        self._wait(findings)
        return False

    # Waiting

    def _patience_seconds(self) -> float:
        """How long to wait, from the arrival of the request on."""
        limit = self._places.max_wait_s
        return limit if limit is not None and self._state is _READING else self._request.max_wait_ms / 1000

    def _wait(self, findings: Findings) -> None:
        """There are fewer than min.bytes, or there is no memory to read them."""
        held = self._places.held
        if held.answers or held.grant.size:
            held.drop_cheap()
        self._enter(_WAITING)
        self._listen()
        if findings.has_trouble:
            if self._reads_again is not None:
                self._reads_again.cancel()
            self._reads_again = self._owner.call_within(READ_AGAIN_SECONDS, self.notify)
        if self._has_news:
            self._has_news = False
            self.notify()

    def _listen(self) -> None:
        """Be notified when any of the partitions moves, and when the client leaves. Harmless if that is so already."""
        self._places.watch.start(self, self._context)
        self._exchange.on_closed = self._left

    def notify(self) -> None:
        """A partition has moved, or there is memory again."""
        if self._state is _WAITING:
            self._enter(_WOKEN)
            self._owner.look_soon(self)
        elif self._state is not _WOKEN:
            self._has_news = True

    def expired(self) -> None:
        """The wait is over. A pending read without a limit of its own gets some more time: else requests repeat it."""
        if self._state is _ANSWERED or self._state is _ABANDONED:
            return
        places = self._places
        self._context.look_at_all()
        findings = places.look(self)
        if self._state is _READING and places.max_wait_s is None and not self._is_worth_sending(findings):
            places.held.hold_while_reading(findings, places.watch.found)
            self._enter(_OVERDUE)
            self._deadline = self._owner.call_within(SLOW_READ_SECONDS, self.expired)
            return
        self._enter(_LAST_LOOK)
        self._answer(findings)

    def _is_worth_sending(self, findings: Findings) -> bool:
        """Whether the client, whose time is over, is answered without what is pending."""
        return self._places.max_wait_s is None and findings.is_worth_sending(self._request.min_bytes)

    def _left(self) -> None:
        """The client is gone. What it asked for is not kept until its max.wait.ms is over, which may be days."""
        self._end(_ABANDONED)

    def _end(self, state: PollState) -> None:
        """Nothing is waited for any more."""
        held, is_reading = self._places.held, self._state is _READING or self._state is _OVERDUE
        self._enter(state)
        self._owner.memory.unwatch(self)
        if is_reading:
            held.drop_answers()  # its memory is given back when the reads are through
        else:
            held.give_back()
        if self._exchange.on_closed is None:  # it has never waited
            return
        self._exchange.on_closed = None
        if self._deadline is not None:
            self._deadline.cancel()
        if self._reads_again is not None:
            self._reads_again.cancel()
        self._places.watch.stop(self, self._context)

    # Pending reads

    def _begin_reads(self, findings: Findings) -> bool:
        """Read what is pending. False if there is no memory for it; the poll is notified when there is."""
        places, size = self._places, findings.size
        granted = places.held.take_room(places.max_bytes - size, beside=findings.memory)
        if not granted:
            self._owner.memory.watch(self)
            return False
        places.held.hold_while_reading(findings, places.watch.found)
        self._enter(_READING)
        self._listen()
        bases = {place: ReadBasis.of(place, places.watch.found[place]) for place in findings.pending}
        self._owner.start(self._read(findings.pending, bases, granted, min_one_message=size == 0))
        return True

    async def _read(
        self,
        pending: Mapping[Place, PendingRead],
        bases: Mapping[Place, ReadBasis],
        max_bytes: int,
        *,
        min_one_message: bool,
    ) -> None:
        """Read, then put everything together. If the client is gone by then, the records are cached for others."""
        held = self._places.held
        try:
            results = await self._owner.partitions.read(
                [*pending.values()],
                max_bytes=max_bytes,
                min_one_message=min_one_message,
                is_wanted=self._waits_for_reads,
            )
        except Exception:  # an unforeseen failure of a reader ends this connection only
            logger.exception("a Fetch that reads from an object store failed")
            if self._waits_for_reads():
                self._end(_ABANDONED)
                self._exchange.abort("reading diskless or remote records failed")
            held.give_back()
            return
        if not self._waits_for_reads():  # answered, or abandoned
            held.give_back()
            return
        for place, result in zip(pending, results, strict=True):
            held.keep(place, bases[place], result)
        if self._state is _OVERDUE:
            self._enter(_LAST_LOOK)
            self._answer(self._places.look(self))
        else:
            self._enter(_LOOKING)
            self._go_on(self._places.look(self))

    def _waits_for_reads(self) -> bool:
        return self._state is _READING or self._state is _OVERDUE

    # Answering

    def _share_key(self) -> ShareKey | None:
        """What an answer depends on, if others may want the same."""
        places = self._context.places
        if len(places) != 1 or self._places.held.answers:
            return None
        reads = self._places
        return ShareKey(places[0].entry, reads.max_bytes, reads.isolation, self._exchange.api_version)

    def _answer_shared(self, known: SharedAnswer) -> bool:
        """Answer with what was read for all. False if that is too little, or takes memory of which there is none."""
        if known.length < self._request.min_bytes or self._owner.memory.is_full:
            return False
        if not self._context.sends(self._context.places[0], known.answer):
            return False
        self._end(_ANSWERED)
        if self._places.isolation is not _LOG_END:
            count_reads(self._owner.partitions.traffic, (known.answer,))
        known.send(self._exchange, self._context.session_id)
        return True

    def _answer(self, findings: Findings, shared: SharedAnswers | None = None, key: ShareKey | None = None) -> None:
        """Answer with what there is. What was read for `key` is shared with others."""
        answers = [*findings.answers.values()]
        has_errors = findings.must_be_told or findings.has_trouble
        if findings.pending:
            has_errors = True
            answers += map(self._places.without_records, findings.pending)
        if shared is not None and key is not None and len(answers) == 1 and not has_errors:
            known = shared.add(key, answers[0])
            if known is not None and self._answer_shared(known):
                return
        self._end(_ANSWERED)
        if self._places.isolation is not _LOG_END:
            count_reads(self._owner.partitions.traffic, answers)
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
            memory=findings.memory,
        )
