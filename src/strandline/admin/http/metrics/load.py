"""Metrics of requests, connections and the event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from strandline.admin.http.metrics.families import Family, Samples, counters, gauge, gauges
from strandline.admin.load import LoadStatus
from strandline.server.times import ApiTimesStatus, plus
from strandline.server.times.recording import FOLLOWER_FETCH
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode

_REQUESTS: Final = "kafka_network_requestmetrics_"
_SOCKETS: Final = "kafka_server_socket_server_metrics_"
_PURGATORY: Final = "kafka_server_delayedoperationpurgatory_purgatorysize"

# Kafka's names of the parts of a request's time, and what we call them.
_TIMES: Final = {
    "totaltimems": ("total", "from the turn of the event loop that found the request until its answer was sent"),
    "requestqueuetimems": ("queue", "before the handler began; below a millisecond: 0"),
    "localtimems": ("local", "until the handler had answered or waited for something"),
    "remotetimems": ("remote", "waiting: for records, commits, other brokers or members of a group"),
    "responsequeuetimems": ("response_queue", "until earlier answers of the connection were sent"),
    "responsesendtimems": ("send", "until the kernel had the answer"),
}

# Each has twenty lines for each API: the time for sending is in the summaries only.
_IN_HISTOGRAMS: Final = ("total", "queue", "local", "remote")


def request_name(key: int) -> str:
    """Kafka's name of an API, such as ListOffsets."""
    return "FetchFollower" if key == FOLLOWER_FETCH else "".join(map(str.capitalize, ApiKey(key).name.split("_")))


def by_request(status: LoadStatus) -> Mapping[str, ApiTimesStatus]:
    """The requests by Kafka's names, which are three for Fetch: of consumers, of followers, and both together."""
    named = {request_name(key): api for key, api in status.requests.items()}
    consumers, followers = named.get("Fetch"), named.get("FetchFollower")
    if consumers is None or followers is None:
        return named
    both = ApiTimesStatus(
        versions=_sum(consumers.versions, followers.versions),
        errors=_sum(consumers.errors, followers.errors),
        parts={part: plus(times, followers.parts[part]) for part, times in consumers.parts.items()},
    )
    return {**named, "Fetch": both, "FetchConsumer": consumers}


def _sum(one: Mapping[int, int], other: Mapping[int, int]) -> Mapping[int, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def _by_version(status: LoadStatus) -> Samples:
    return {
        (name, str(version)): count
        for name, api in by_request(status).items()
        for version, count in (sorted(api.versions.items()) or [(0, 0)])
    }


def _by_error(status: LoadStatus) -> Samples:
    return {
        (name, ErrorCode(code).name): count
        for name, api in by_request(status).items()
        for code, count in sorted(api.errors.items())
    }


def _times(part: str) -> Callable[[LoadStatus], Samples]:
    return lambda status: {(name,): api.parts[part] for name, api in by_request(status).items()}


def _histograms(status: LoadStatus) -> Samples:
    return {
        (name, part): api.parts[part]
        for name, api in by_request(status).items()
        if name != "FetchConsumer"
        for part in _IN_HISTOGRAMS
    }


LOAD: Final[tuple[Family[LoadStatus], ...]] = (
    Family("counter", _REQUESTS + "requests", "Requests since the start.", ("request", "version"), _by_version, {}),
    Family("counter", _REQUESTS + "errors", "Errors in answers since the start.", ("request", "error"), _by_error, {}),
    *(
        Family(
            "summary", _REQUESTS + name, f"Milliseconds {text}. Of the last minutes.", ("request",), _times(part), {}
        )
        for name, (part, text) in _TIMES.items()
    ),
    Family(
        "histogram",
        "strandline_request_seconds",
        "How long requests took since the start: in all, in the queue, locally, and waiting (remote).",
        ("request", "part"),
        _histograms,
        {},
    ),
    gauge(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "The part of the last minute in which the event loop's thread used no CPU, from 0 to 1. It does both the work "
        "of network processors and that of request handlers.",
        lambda s: s.idle,
    ),
    gauge(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "The same: there is one event loop.",
        lambda s: s.idle,
    ),
    gauge(
        "kafka_network_requestchannel_requestqueuesize",
        "Connections whose next request waits: for the answer before it, for memory, for a slow reader.",
        lambda s: s.requests_queued,
    ),
    gauge(
        "kafka_network_requestchannel_responsequeuesize",
        "Connections whose answers are not sent completely.",
        lambda s: s.answers_queued,
    ),
    gauges(_PURGATORY, "Requests that wait for records, commits or replicas.", "delayedoperation", lambda s: s.waiting),
    Family(
        "untyped",
        _SOCKETS + "connection_count",
        "Open client connections.",
        ("listener",),
        lambda s: {(name,): count for name, count in s.connections.items()},
        {},
    ),
    counters(_SOCKETS + "connection_creation", "Connections accepted.", "listener", lambda s: s.connections_accepted),
    counters(_SOCKETS + "connection_close", "Connections closed.", "listener", lambda s: s.connections_closed),
    gauges(
        _SOCKETS + "connection_creation_rate",
        "Connections accepted in a second, over the last minute.",
        "listener",
        lambda s: s.accepted_per_second,
    ),
    gauges(
        _SOCKETS + "connection_close_rate",
        "Connections closed in a second, over the last minute.",
        "listener",
        lambda s: s.closed_per_second,
    ),
    gauge(
        "kafka_server_kafkaserver_linux_disk_read_bytes",
        "Bytes that the process read from disks, as Linux counts them.",
        lambda s: s.disk_read_bytes,
    ),
    gauge(
        "kafka_server_kafkaserver_linux_disk_write_bytes",
        "Bytes that the process wrote to disks, as Linux counts them.",
        lambda s: s.disk_write_bytes,
    ),
)
