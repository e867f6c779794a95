"""Fetch sessions (KIP-227): what is remembered, what is sent, and which mistakes are refused."""

from __future__ import annotations

import asyncio

import pytest

from strandline.clock import SystemChance
from strandline.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from strandline.server.fetch_sessions import EVICTABLE_AFTER_SECONDS, FetchContext, FetchSessions
from strandline.wire.fetch_codec import FetchAnswer, FetchEntry, FetchRequest


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    async def wait_set(self, event: asyncio.Event, *, within: float) -> bool:
        self.seconds += within
        return event.is_set()


class Records:
    """Records of some length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def read(self) -> bytes:
        return bytes(self.length)


def entry(partition: int, offset: int = 0, topic: str | bytes = "t") -> FetchEntry:
    return FetchEntry(topic, partition, -1, offset, -1, -1, 1000)


def request(
    *entries: FetchEntry, session: int = 0, epoch: int = 0, forgotten: tuple[tuple[str | bytes, int], ...] = ()
) -> FetchRequest:
    return FetchRequest(-1, 0, 1, 10_000, 0, session, epoch, list(entries), list(forgotten), "")


def answer(partition: int, *, high_watermark: int = 5, size: int = 0, error: int = 0) -> FetchAnswer:
    return FetchAnswer("t", partition, error, high_watermark, -1, 0, None, Records(size) if size else None)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock: HandClock) -> FetchSessions:
    return FetchSessions(2, clock, SystemChance(1))


def begin(sessions: FetchSessions, *entries: FetchEntry) -> FetchContext:
    context = sessions.open(request(*entries), uses_ids=False)
    context.select([answer(e.partition) for e in entries])
    return context


def partitions(context: FetchContext) -> list[int]:
    return [place.entry.partition for place in context.places]


def test_a_sessionless_fetch_makes_no_session(sessions: FetchSessions) -> None:
    context = sessions.open(request(entry(0), epoch=-1), uses_ids=False)
    assert context.session_id == 0
    assert len(sessions) == 0
    assert [a.partition for a in context.select([answer(0)])] == [0]


def test_an_incremental_fetch_reads_everything_and_sends_only_news(sessions: FetchSessions) -> None:
    first = begin(sessions, entry(0), entry(1), entry(2))
    context = sessions.open(request(session=first.session_id, epoch=1), uses_ids=False)
    assert partitions(context) == [0, 1, 2]
    sent = context.select([answer(0), answer(1, high_watermark=6), answer(2, size=10)])
    assert [a.partition for a in sent] == [1, 2]


def test_a_partition_with_data_goes_to_the_end_of_the_line(sessions: FetchSessions) -> None:
    first = begin(sessions, entry(0), entry(1), entry(2))
    context = sessions.open(request(session=first.session_id, epoch=1), uses_ids=False)
    context.select([answer(0, size=5), answer(1), answer(2)])
    again = sessions.open(request(entry(0, 3), session=first.session_id, epoch=2), uses_ids=False)
    assert partitions(again) == [1, 2, 0]
    assert again.places[2].entry.fetch_offset == 3


def test_an_error_is_sent_again_until_it_is_gone(sessions: FetchSessions) -> None:
    first = begin(sessions, entry(0))
    for epoch in (1, 2):
        context = sessions.open(request(session=first.session_id, epoch=epoch), uses_ids=False)
        assert [a.error_code for a in context.select([answer(0, error=6)])] == [6]
    healed = sessions.open(request(session=first.session_id, epoch=3), uses_ids=False)
    assert [a.error_code for a in healed.select([answer(0)])] == [0]


def test_forgotten_partitions_are_not_read_and_the_last_one_ends_the_session(sessions: FetchSessions) -> None:
    first = begin(sessions, entry(0), entry(1))
    context = sessions.open(request(session=first.session_id, epoch=1, forgotten=(("t", 0),)), uses_ids=False)
    assert partitions(context) == [1]
    last = sessions.open(request(session=first.session_id, epoch=2, forgotten=(("t", 1),)), uses_ids=False)
    assert last.session_id == 0
    assert len(sessions) == 0


def test_wrong_ids_epochs_and_keys_are_refused(sessions: FetchSessions) -> None:
    first = begin(sessions, entry(0))
    with pytest.raises(FetchSessionIdNotFound):
        sessions.open(request(session=first.session_id + 1, epoch=1), uses_ids=False)
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.open(request(session=first.session_id, epoch=2), uses_ids=False)
    with pytest.raises(FetchSessionTopicIdError):
        sessions.open(request(session=first.session_id, epoch=1), uses_ids=True)
    assert partitions(sessions.open(request(session=first.session_id, epoch=1), uses_ids=False)) == [0]


def test_epoch_minus_one_closes_a_session(sessions: FetchSessions) -> None:
    first = begin(sessions, entry(0))
    sessions.open(request(entry(0), session=first.session_id, epoch=-1), uses_ids=False)
    assert len(sessions) == 0


def test_a_full_cache_gives_no_session_until_one_has_been_idle(sessions: FetchSessions, clock: HandClock) -> None:
    begin(sessions, entry(0))
    second = begin(sessions, entry(1))
    assert begin(sessions, entry(2)).session_id == 0
    clock.seconds = EVICTABLE_AFTER_SECONDS - 1
    sessions.open(request(session=second.session_id, epoch=1), uses_ids=False)
    clock.seconds = EVICTABLE_AFTER_SECONDS
    assert begin(sessions, entry(2)).session_id != 0
    assert len(sessions) == 2
    assert partitions(sessions.open(request(session=second.session_id, epoch=2), uses_ids=False)) == [1]


def test_a_partition_that_is_named_twice_has_one_place(sessions: FetchSessions) -> None:
    """Else the other place would be looked at for ever, and watch its partition beyond the end of the session."""
    begun = begin(sessions, entry(0, offset=1), entry(1), entry(0, offset=2))
    following = request(session=begun.session_id, epoch=1)._replace(max_wait_ms=100)
    context = sessions.open(following, uses_ids=False)
    assert context.is_by_news
    assert [(place.entry.partition, place.entry.fetch_offset) for place in context.places] == [(0, 2), (1, 0)]


def follower_request(*entries: FetchEntry, session: int = 0, epoch: int = 0) -> FetchRequest:
    return FetchRequest(2, 500, 1, 10_000, 0, session, epoch, list(entries), [], "")


def test_what_a_follower_may_not_have_received_is_sent_again(sessions: FetchSessions) -> None:
    """It gives a request up by closing the connection, and its session goes on: the answer may have been on its way."""
    first = sessions.open(follower_request(entry(0), entry(1)), uses_ids=False, connection_id=1)
    first.select([answer(0), answer(1)])
    session = first.session_id
    second = sessions.open(follower_request(session=session, epoch=1), uses_ids=False, connection_id=1)
    assert second.select([answer(0, high_watermark=6), answer(1)]) == [answer(0, high_watermark=6)]
    third = sessions.open(follower_request(session=session, epoch=2), uses_ids=False, connection_id=2)
    assert third.select([answer(0, high_watermark=6), answer(1)]) == [answer(0, high_watermark=6)]
    fourth = sessions.open(follower_request(session=session, epoch=3), uses_ids=False, connection_id=2)
    assert fourth.select([answer(0, high_watermark=6), answer(1)]) == []


def test_an_answer_over_a_connection_that_a_follower_has_given_up_counts_for_nothing(sessions: FetchSessions) -> None:
    first = sessions.open(follower_request(entry(0)), uses_ids=False, connection_id=1)
    first.select([answer(0)])
    given_up = sessions.open(follower_request(session=first.session_id, epoch=1), uses_ids=False, connection_id=1)
    again = sessions.open(follower_request(session=first.session_id, epoch=2), uses_ids=False, connection_id=2)
    given_up.select([answer(0, high_watermark=6)])
    assert again.select([answer(0, high_watermark=6)]) == [answer(0, high_watermark=6)]


def test_a_follower_that_asks_something_else_is_answered_in_any_case(sessions: FetchSessions) -> None:
    """It has dropped the answer that crossed its change of mind, as in another leader epoch."""
    first = sessions.open(follower_request(entry(0), entry(1)), uses_ids=False)
    first.select([answer(0), answer(1)])
    second = sessions.open(follower_request(entry(0, 3), session=first.session_id, epoch=1), uses_ids=False)
    assert second.select([answer(0), answer(1)]) == [answer(0)]
