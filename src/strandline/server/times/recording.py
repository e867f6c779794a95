"""Counts requests and their durations, by API.

The life of a request, and what its parts are called (Kafka's names):

- queue: from the turn of the event loop in which its bytes were found until its handler begins. The loop knows the
  beginning of its turn to a millisecond, which is taken off: what is shorter counts as 0.
- local: until the handler has answered, or waits for something.
- remote: until what it waits for is there: records for a Fetch, the commit of a diskless batch, a thread that writes a
  large batch, another broker, the other members of a group.
- response queue: until earlier answers of its connection are on their way.
- send: until the kernel has all bytes of the answer.

`record` is called for each request: it takes less than a microsecond, and must not take more.
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

# Quantiles are of the requests of the last five to six minutes, or since somebody asked last if that is longer ago.
WINDOW_SECONDS: Final = 300.0
STEP_SECONDS: Final = 60.0

# Fetch requests of brokers that follow a leader are counted apart, under this key, which no API has.
FOLLOWER_FETCH: Final = -1


class ApiTimes:
    """The counters of one API."""

    __slots__ = (
        "_local",
        "_local_ns",
        "_queue",
        "_queue_ns",
        "_remote",
        "_remote_ns",
        "_response_queue",
        "_send",
        "_send_ns",
        "_total",
        "_total_ns",
        "errors",
        "followers",
        "versions",
    )

    def __init__(self, followers: ApiTimes | None = None) -> None:
        self.followers = followers
        """Of Fetch: the counters of brokers that follow a leader."""
        self.versions: Counter[int] = Counter()
        """Requests by version, whether they have been answered or not."""
        self.errors: Counter[int] = Counter()
        """Errors in answers, by code."""
        # By bucket. Of these three, durations of the first bucket need not be counted: they follow from the others.
        self._queue, self._remote, self._response_queue = [0] * BUCKETS, [0] * BUCKETS, [0] * BUCKETS
        self._local, self._send, self._total = [0] * BUCKETS, [0] * BUCKETS, [0] * BUCKETS
        self._queue_ns = self._local_ns = self._remote_ns = self._send_ns = self._total_ns = 0

    def record(self, exchange: Exchange, leaving_ns: int, sent_ns: int) -> None:
        """The answer of a request was sent; `leaving_ns` is when its turn to be sent came."""
        started, local_end = exchange.started_ns, exchange.local_end_ns
        time = local_end - started
        self._local[(time >> SHIFT).bit_length()] += 1
        self._local_ns += time
        time = sent_ns - leaving_ns
        self._send[(time >> SHIFT).bit_length()] += 1
        self._send_ns += time
        answered = exchange.answered_ns
        if answered:
            time = answered - local_end
            self._remote[(time >> SHIFT).bit_length()] += 1
            self._remote_ns += time
            time = leaving_ns - answered
        else:
            time = leaving_ns - local_end
        self._response_queue[(time >> SHIFT).bit_length()] += 1
        time = exchange.queue_ns
        if time > 0:
            self._queue[(time >> SHIFT).bit_length()] += 1
            self._queue_ns += time
            time += sent_ns - started
        else:
            time = sent_ns - started
        self._total[(time >> SHIFT).bit_length()] += 1
        self._total_ns += time

    def counts(self) -> _Counts:
        """The buckets of each part now, in the order of PARTS."""
        total = sum(self._total)
        parts = [self._queue, self._local, self._remote, self._response_queue, self._send, self._total]
        return tuple((total - sum(part[1:]), *part[1:]) for part in parts)

    def sums_ns(self) -> tuple[int, ...]:
        """The sum of the durations of each part, in the order of PARTS."""
        known = (self._queue_ns, self._local_ns, self._remote_ns, self._send_ns)
        response_queue = self._total_ns - sum(known)
        return (*known[:3], response_queue, known[3], self._total_ns)


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
