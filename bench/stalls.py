"""What clients of classic topics feel while diskless writes stall under load, on a store or a database that is stopped.

    .venv/bin/python -m bench.stalls [--seconds 30] [--against REV]

One broker, six producers that send diskless batches as fast as the broker takes them, and one client that writes a
record of 1 KB to a classic topic and reads it back, over and over. Its latencies: without the six, with them, and while
the store or the database is stopped (SIGSTOP). A regression: a p99 of the stall above twice the p99 before it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench import s3_server
from bench.change import BEFORE
from bench.controlplane_load import databases
from bench.systems import Strandline, StrandlineBroker
from bench.topics import Topics
from bench.tree import SourceTree
from strandline.clock import SystemClock
from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.registry import encode_request

_FLOODS: Final = 6
_BATCH_BYTES: Final = 500_000
_SETTLE_SECONDS: Final = 3.0
_VERSION: Final = 12


class Probe:
    """Writes and reads one record at a time, and notes how long it took."""

    def __init__(self, broker: StrandlineBroker) -> None:
        host, port = broker.bootstrap.split(":")
        self._client = Client.connect(host, int(port), timeout_s=60.0)

    def measure(self, seconds: float) -> Mapping[str, list[float]]:
        """Milliseconds of each Produce and of each Fetch."""
        found: dict[str, list[float]] = {"produce": [], "fetch": []}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            offset = self._timed(found["produce"], self._produce)
            self._timed(found["fetch"], partial(self._fetch, offset))
            time.sleep(0.002)
        return found

    def _timed(self, times: list[float], call: Callable[[], int]) -> int:
        began = time.perf_counter()
        answer = call()
        times.append((time.perf_counter() - began) * 1000)
        return answer

    def _produce(self) -> int:
        request = _produce_request("classic", b"x" * 1024)
        (answer,) = self._client.request(ApiKey.PRODUCE, request, version=_VERSION).responses[0].partition_responses
        if answer.error_code:
            sys.exit(f"A record for the classic topic was refused with error {answer.error_code}.")
        return int(answer.base_offset)

    def _fetch(self, offset: int) -> int:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic="classic", partitions=[partition])],
        )
        answer = self._client.request(ApiKey.FETCH, request, version=_VERSION)
        return len(answer.responses[0].partitions[0].records or b"")


def _produce_request(topic: str, value: bytes) -> ProduceRequest:
    records = bytes(build_batch([Record(0, SystemClock().now_ms(), None, value)]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data])


def _flood(port: int) -> None:
    """Send diskless batches over several connections, and read their answers, until this process is ended."""
    request = _produce_request("diskless", b"x" * _BATCH_BYTES)
    frame = encode_request(ApiKey.PRODUCE, _VERSION, 0, "flood", request)
    data = struct.pack(">i", len(frame)) + frame
    for _ in range(_FLOODS):
        sock = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=_send_for_ever, args=(sock, data), daemon=True).start()
        threading.Thread(target=_receive_for_ever, args=(sock,), daemon=True).start()
    signal.pause()


def _send_for_ever(sock: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        while True:
            sock.sendall(data)


def _receive_for_ever(sock: socket.socket) -> None:
    with suppress(OSError):
        while sock.recv(1 << 16):
            pass


@contextmanager
def _stopped(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _with_children(pids: list[int]) -> list[int]:
    return pids + [child for pid in pids for child in _pgrep("-P", str(pid))]


def _postmaster(directory: Path) -> list[int]:
    return [int((directory / "postmaster.pid").read_text().split()[0])]


def _pgrep(*arguments: str) -> list[int]:
    answer = subprocess.run(["pgrep", *arguments], capture_output=True, text=True)
    return [int(pid) for pid in answer.stdout.split()]


def _measure(
    broker: StrandlineBroker, stall: Callable[[], list[int]], seconds: float, table: Table, title: str
) -> None:
    try:
        _measure_phases(broker, stall, seconds, table, title)
    finally:
        broker.stop()


def _measure_phases(
    broker: StrandlineBroker, stall: Callable[[], list[int]], seconds: float, table: Table, title: str
) -> None:
    broker.start()
    Topics(broker.bootstrap).create({"classic": 1})
    Topics(broker.bootstrap).create({"diskless": 1}, {"diskless.enable": "true", "retention.bytes": "100000000"})
    probe = Probe(broker)
    phases = {"alone": probe.measure(seconds / 3)}
    flood = multiprocessing.get_context("spawn").Process(target=_flood, args=(int(broker.bootstrap.split(":")[1]),))
    flood.start()
    try:
        time.sleep(_SETTLE_SECONDS)
        phases["six diskless producers"] = probe.measure(seconds / 3)
        memory = broker.process.usage().rss_bytes
        with _stopped(stall()):
            phases["their writes stall"] = probe.measure(seconds)
            memory = broker.process.usage().rss_bytes - memory
        phases["they go on"] = probe.measure(seconds / 3)
    finally:
        flood.kill()
        flood.join()
    for phase, found in phases.items():
        cells = [f"{_quantile(times, q):.1f}" for times in found.values() for q in (0.5, 0.99, 1.0)]
        note = f"{memory / 1e6:+.0f} MB" if phase == "their writes stall" else ""
        table.add_row(title, phase, *cells, str(len(found["produce"])), note)


def _quantile(times: list[float], q: float) -> float:
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * q), len(ordered) - 1)]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.stalls", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the stall lasts")
    parser.add_argument("--against", metavar="REV", help="measure this commit instead of the working tree")
    parser.add_argument("--cache", type=Path, default=Path(".cache"))
    options = parser.parse_args()
    tree = SourceTree.working() if options.against is None else SourceTree.at(options.against, options.cache)
    system = Strandline(tree) if options.against is None else Strandline(tree, BEFORE)
    columns = ["stalled", "phase", *(f"{api} {q}" for api in ("produce", "fetch") for q in ("p50", "p99", "max"))]
    table = Table(*columns, "requests", "memory", title="Classic topic beside diskless producers, ms")
    program = s3_server.build(options.cache)
    directory = Path(tempfile.mkdtemp(prefix="strandline-stalls-"))
    try:
        with s3_server.running(program, directory / "s3") as s3:
            broker = system.new_broker(directory / "store", s3.settings("stalls"))
            _measure(broker, lambda: _pgrep("-f", str(s3.buckets)), options.seconds, table, "S3")
        with databases("postgresql", directory) as create:
            settings = {"strandline.metadata.url": create(1), "strandline.objects.url": f"file://{directory}/objects"}
            broker = system.new_broker(directory / "database", settings)
            _measure(
                broker,
                lambda: _with_children(_postmaster(directory / "postgres")),
                options.seconds,
                table,
                "PostgreSQL",
            )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    Console(width=150).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
