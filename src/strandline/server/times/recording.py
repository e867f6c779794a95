"""Counts requests and their durations, by API.

The life of a request, and what its parts are called (Kafka's names):

- queue: from the turn of the event loop in which its bytes were found until its handler begins. The loop knows the
  beginning of its turn to a millisecond, which is taken off: what is shorter counts as 0.
- local: until the handler has answered, or waits for something.
- remote: until what it waits for is there: records for a Fetch, the commit of a diskless batch, a thread that writes a
  large batch, another broker, the other members of a group.
- response queue: until earlier answers of its connection are on their way.
- send: until the kernel has all bytes of the answer.

`record` is called for each request. All that is measured takes two to three hundredths of the time of the smallest one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.clock import Clock
from strandline.server.times.distributions import BUCKETS, SHIFT, Distribution
from strandline.wire.api import SERVED_APIS, ApiKey

if TYPE_CHECKING:
    from strandline.server.exchange import Exchange

PARTS: Final = ("queue", "local", "remote", "response_queue", "send", "total")

# Quantiles are of the requests of the last five to six minutes, or since they were read last if that is longer ago.
WINDOW_SECONDS: Final = 300.0
STEP_SECONDS: Final = 60.0

TURN_RESOLUTION: Final = 0.001  # the event loop knows the beginning of its turn in whole milliseconds

# Fetch requests of brokers that follow a leader are counted apart, under this key, which is of no API.
FOLLOWER_FETCH: Final = -1


# Where the buckets of each part lie in the one list of an API, and behind them the sums of the durations. Durations of
# the first bucket need not be counted, except in the total: they follow from it.
_LOCAL, _SEND, _REMOTE, _QUEUE, _RESPONSE_QUEUE, _TOTAL = range(0, 6 * BUCKETS, BUCKETS)
_SUM_LOCAL, _SUM_SEND, _SUM_REMOTE, _SUM_QUEUE, _SUM_TOTAL = range(6 * BUCKETS, 6 * BUCKETS + 5)


class ApiTimes:
    """The counters of one API."""

    __slots__ = ("_numbers", "errors", "followers", "versions")

    def __init__(self, followers: ApiTimes | None = None) -> None:
        self.followers = followers
        """Of Fetch: the counters of brokers that follow a leader."""
        self.versions: Counter[int] = Counter()
        """Requests by version, whether they have been answered or not."""
        self.errors: Counter[int] = Counter()
        """Errors in answers, by code."""
        self._numbers = [0] * (6 * BUCKETS + 5)

    def record(self, exchange: Exchange, leaving: int, sent_ns: int) -> None:
        """The answer of a request was sent; its turn to be sent came at `leaving`."""
        numbers = self._numbers
        started, local_end = exchange.started_ns, exchange.local_end_ns
        time = local_end - started
        numbers[_LOCAL + (time >> SHIFT).bit_length()] += 1
        numbers[_SUM_LOCAL] += time
        time = sent_ns - leaving
        numbers[_SEND + (time >> SHIFT).bit_length()] += 1
        numbers[_SUM_SEND] += time
        if leaving != local_end:
            answered = exchange.answered_ns or local_end
            time = answered - local_end
            numbers[_REMOTE + (time >> SHIFT).bit_length()] += 1
            numbers[_SUM_REMOTE] += time
            numbers[_RESPONSE_QUEUE + (leaving - answered >> SHIFT).bit_length()] += 1
        time = sent_ns - started
        queue = exchange.queue_ns
        if queue:
            numbers[_QUEUE + (queue >> SHIFT).bit_length()] += 1
            numbers[_SUM_QUEUE] += queue
            time += queue
        numbers[_TOTAL + (time >> SHIFT).bit_length()] += 1
        numbers[_SUM_TOTAL] += time

    def record_alike(
        self, version: int, count: int, turn_began: float, started_ns: int, served_ns: int, sent_ns: int
    ) -> None:
        """Requests of one receive were answered one after the other and sent together: each counts with the mean.

        `turn_began` is the time of the event loop, see `queue` above.
        """
        self.versions[version] += count
        numbers = self._numbers
        local, send = served_ns - started_ns, sent_ns - served_ns
        numbers[_SUM_LOCAL] += local
        numbers[_SUM_SEND] += send
        time = local + send
        waited = started_ns / 1e9 - turn_began
        if waited > TURN_RESOLUTION:
            queue = int(1e9 * (waited - TURN_RESOLUTION))
            numbers[_QUEUE + (queue >> SHIFT).bit_length()] += count
            numbers[_SUM_QUEUE] += queue * count
            time += queue * count
        if count > 1:
            local //= count
            send //= count
        numbers[_LOCAL + (local >> SHIFT).bit_length()] += count
        numbers[_SEND + (send >> SHIFT).bit_length()] += count
        numbers[_TOTAL + (time // count >> SHIFT).bit_length()] += count
        numbers[_SUM_TOTAL] += time

    def counts(self) -> _Counts:
        """The buckets of each part now, in the order of PARTS."""
        numbers = self._numbers
        total = sum(numbers[_TOTAL : _TOTAL + BUCKETS])
        found = (numbers[at + 1 : at + BUCKETS] for at in (_QUEUE, _LOCAL, _REMOTE, _RESPONSE_QUEUE, _SEND, _TOTAL))
        return tuple((total - sum(part), *part) for part in found)

    def sums_ns(self) -> tuple[int, ...]:
        """The sum of the durations of each part, in the order of PARTS."""
        local, send, remote, queue, total = self._numbers[_SUM_LOCAL:]
        return (queue, local, remote, total - local - send - remote - queue, send, total)


_Counts = tuple[tuple[int, ...], ...]
_NOTHING: Final[_Counts] = ((0,) * BUCKETS,) * len(PARTS)


@dataclass(frozen=True, slots=True)
class ApiTimesStatus:
    """The requests of one API so far."""

    versions: Mapping[int, int]
    errors: Mapping[int, int]
    parts: Mapping[str, Distribution]
    """By the names in PARTS."""


class _Reading(NamedTuple):
    """All counters at one time."""

    at: float
    counts: Mapping[int, _Counts]


class RequestTimes(dict[int, ApiTimes]):
    """The counters of each API that is served, by its key; FOLLOWER_FETCH has its own."""

    def __init__(self, clock: Clock) -> None:
        super().__init__({int(key): ApiTimes() for key in SERVED_APIS})
        self[FOLLOWER_FETCH] = ApiTimes()
        self[ApiKey.FETCH] = ApiTimes(followers=self[FOLLOWER_FETCH])
        self._clock = clock
        self._readings: deque[_Reading] = deque([_Reading(clock.monotonic(), {})])

    def requests(self) -> Mapping[ApiKey, int]:
        """How many requests there were, by API, of those that were used."""
        counts = {ApiKey(key): times.versions.total() for key, times in self.items() if key != FOLLOWER_FETCH}
        counts[ApiKey.FETCH] += self[FOLLOWER_FETCH].versions.total()
        return {key: count for key, count in counts.items() if count}

    def status(self) -> Mapping[int, ApiTimesStatus]:
        """The requests of each API that was used, by its key; Produce and Fetch always.

        Remembers its own numbers, from which the next calls find out what is recent.
        """
        now = self._clock.monotonic()
        always = (ApiKey.PRODUCE, ApiKey.FETCH, FOLLOWER_FETCH)
        used = {key: times for key, times in self.items() if times.versions or key in always}
        counts = {key: times.counts() for key, times in used.items()}
        readings = self._readings
        while len(readings) > 1 and now - readings[1].at >= WINDOW_SECONDS:
            readings.popleft()
        before = readings[0].counts
        if now - readings[-1].at >= STEP_SECONDS:
            readings.append(_Reading(now, counts))
        return {
            key: ApiTimesStatus(
                times.versions.copy(),
                times.errors.copy(),
                _distributions(counts[key], times.sums_ns(), before.get(key, _NOTHING)),
            )
            for key, times in used.items()
        }


def _distributions(counts: _Counts, sums_ns: tuple[int, ...], before: _Counts) -> Mapping[str, Distribution]:
    return {
        part: Distribution(now, sum_ns, [a - b for a, b in zip(now, old, strict=True)])
        for part, now, sum_ns, old in zip(PARTS, counts, sums_ns, before, strict=True)
    }
