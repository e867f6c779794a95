"""How busy a broker is: its requests, its connections, its event loop, its disk. A value, and how it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strandline.averages import OneMinuteAverage
from strandline.clock import Clock, thread_seconds
from strandline.server.network import NetworkServer
from strandline.server.times import ApiTimesStatus, RequestTimes
from strandline.wire.api import ApiKey

_DISK: Final = Path("/proc/self/io")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStatus:
    """One broker at one instant."""

    requests: Mapping[int, ApiTimesStatus] = field(default_factory=dict)
    """By API key."""
    idle: float = 1.0
    """The part of the last minute in which the thread of the event loop used no CPU."""
    connections: Mapping[str, int] = field(default_factory=dict)
    """By listener."""
    connections_accepted: Mapping[str, int] = field(default_factory=dict)
    connections_closed: Mapping[str, int] = field(default_factory=dict)
    accepted_per_second: Mapping[str, float] = field(default_factory=dict)
    closed_per_second: Mapping[str, float] = field(default_factory=dict)
    requests_queued: int = 0
    """Connections whose next request waits: for an answer before it, for memory, for a slow reader."""
    answers_queued: int = 0
    """Connections whose answers are not all sent."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Requests that wait for something, by API: Produce and Fetch."""
    disk_read_bytes: int = 0
    """By this process, from disks; 0 where the system does not say."""
    disk_write_bytes: int = 0


class Load:
    """Measures the load of a broker. Lives on the event loop, whose thread it measures."""

    def __init__(self, network: NetworkServer, times: RequestTimes, clock: Clock) -> None:
        self._network, self._times, self._clock = network, times, clock
        self._busy = OneMinuteAverage(clock, thread_seconds())
        self._rates: dict[tuple[str, str], OneMinuteAverage] = {}

    def status(self) -> LoadStatus:
        """The load now."""
        network = self._network
        accepted, closed = network.accepted, network.closed
        connections = Counter(dict.fromkeys(network.listener_names, 0))
        waiting: Counter[int] = Counter()
        requests_queued = answers_queued = 0
        for connection in network.connections:
            connections[connection.listener] += 1
            requests_queued += connection.holds_back
            answers_queued += connection.is_sending
            for key in connection.waiting:
                waiting[key] += 1
        read, written = _disk_bytes()
        return LoadStatus(
            requests=self._times.status(),
            idle=min(max(1 - self._busy.per_second(thread_seconds()), 0.0), 1.0),
            connections=connections,
            connections_accepted={name: accepted[name] for name in connections},
            connections_closed={name: closed[name] for name in connections},
            accepted_per_second={name: self._rate("accepted", name, accepted[name]) for name in connections},
            closed_per_second={name: self._rate("closed", name, closed[name]) for name in connections},
            requests_queued=requests_queued,
            answers_queued=answers_queued,
            waiting={"Fetch": waiting[ApiKey.FETCH], "Produce": waiting[ApiKey.PRODUCE]},
            disk_read_bytes=read,
            disk_write_bytes=written,
        )

    def _rate(self, what: str, listener: str, total: int) -> float:
        average = self._rates.get((what, listener))
        if average is None:
            average = self._rates[what, listener] = OneMinuteAverage(self._clock, total)
        return average.per_second(total)


def _disk_bytes() -> tuple[int, int]:
    try:
        fields = dict(line.split(": ") for line in _DISK.read_text(encoding="ascii").splitlines())
    except OSError:  # not Linux, or a container that hides it
        return 0, 0
    return int(fields["read_bytes"]), int(fields["write_bytes"])
