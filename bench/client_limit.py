"""What a producer reaches with a server that costs next to nothing: the limit that its client sets.

`.venv/bin/python -m bench.client_limit [--workload 100b.1p] [--rounds 3]` measures one workload in turns: with a
broker of the working tree, with Apache Kafka (if it can be had) and with a server that answers each Produce request at
once and throws its records away. That server passes everything else on to a broker, which names it as its own address.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench import kafka
from bench.figures import WORKLOADS
from bench.generator import Generator
from bench.measures import FULL, Bench, throughput, warm_up
from bench.process import ServerProcess, free_port
from bench.systems import ApacheKafka, Broker, Strandline, StrandlineBroker
from bench.tree import SourceTree, python
from strandline.wire.api import ApiKey
from strandline.wire.produce_codec import ProduceAnswer, read_produce_request, write_produce_response
from strandline.wire.registry import read_request_header

_LENGTH: Final = struct.Struct(">i")
_FIRST_BUFFER: Final = 2 * 1024 * 1024


class _Frames:
    """Frames of one connection, each in the same buffer: a frame is gone when the next one is read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray(_FIRST_BUFFER)

    def next(self) -> memoryview | None:
        """The next frame with its length prefix; None if the other side has closed."""
        if not self._fill(0, 4):
            return None
        end = 4 + _LENGTH.unpack_from(self._buffer)[0]
        if end > len(self._buffer):
            self._buffer = bytearray(self._buffer[:4]) + bytearray(2 * end)
        return memoryview(self._buffer)[:end] if self._fill(4, end) else None

    def _fill(self, start: int, end: int) -> bool:
        with memoryview(self._buffer) as view:
            while start < end:
                received = self._connection.recv_into(view[start:end])
                if not received:
                    return False
                start += received
        return True


def _serve_client(client: socket.socket, upstream_port: int) -> None:
    offsets: dict[tuple[str | bytes, int], int] = {}
    with client, socket.create_connection(("127.0.0.1", upstream_port)) as upstream:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        requests, answers = _Frames(client), _Frames(upstream)
        while (frame := requests.next()) is not None:
            header, position = read_request_header(frame[4:])
            if header.api_key == ApiKey.PRODUCE:
                request = read_produce_request(frame[4:], position, header.api_version)
                given = []
                for topic, partition, _ in request.entries:
                    offset = offsets[topic, partition] = offsets.get((topic, partition), -1) + 1
                    given.append(ProduceAnswer(base_offset=offset, log_start_offset=0))
                answer = write_produce_response(header.correlation_id, header.api_version, request.entries, given)
                client.sendall(answer)
            else:
                upstream.sendall(frame)
                passed_on = answers.next()
                if passed_on is None:
                    return
                client.sendall(passed_on)


def _serve(port: int, upstream_port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve_client, args=(client, upstream_port), daemon=True).start()


class _DiscardingBroker:
    """A broker whose clients talk to the discarding server."""

    def __init__(self, system: Strandline, data_dir: Path) -> None:
        self._port = free_port()
        self._broker: StrandlineBroker = system.new_broker(
            data_dir, {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._port}"}
        )
        self._server: ServerProcess | None = None
        self.data_dir = data_dir

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def metrics_url(self) -> str:
        return self._broker.metrics_url

    @property
    def process(self) -> ServerProcess:
        assert self._server is not None
        return self._server

    def start(self, *, led_partitions: int = 0) -> float:
        took = self._broker.start(led_partitions=led_partitions)
        upstream = self._broker.bootstrap.rpartition(":")[2]
        self._server = ServerProcess(
            [*python(), "-m", "bench.client_limit", "--serve", str(self._port), upstream],
            log_file=self.data_dir.with_name(f"{self.data_dir.name}-server.log"),
            environment=SourceTree.working().environment,
            name="discarding server",
        )
        self._server.wait_until(self._answers, timeout=10.0, what="to take a connection")
        return took

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def stop(self) -> float:
        if self._server is not None:
            self._server.stop()
        return self._broker.stop()


def _measure(workload_name: str, rounds: int, home: Path, cache: Path) -> None:
    workload = next(one for one in WORKLOADS if one.name == workload_name)
    generator, system = Generator.build(cache), Strandline(SourceTree.working())
    brokers: dict[str, Broker] = {
        "strandline": system.new_broker(home / "strandline"),
        "discarding": _DiscardingBroker(system, home / "discarding"),
    }
    if kafka.why_unavailable(cache) is None:
        brokers["kafka"] = ApacheKafka(cache).new_broker(home / "kafka")
    found: dict[str, list[float]] = {name: [] for name in brokers}
    try:
        for name, broker in brokers.items():
            broker.start()
            if name != "discarding":
                warm_up(Bench(broker, generator, FULL))
        for number in range(rounds):
            for name, broker in brokers.items():
                bench = Bench(broker, generator, FULL)
                measured = throughput(bench, workload, consumes=False)
                found[name].append(measured[f"produce.{workload.name}"])
            print(f"round {number + 1}: {_line({name: samples[-1] for name, samples in found.items()})}", flush=True)
    finally:
        for broker in brokers.values():
            broker.stop()
    print(
        f"medians, {workload.title}, load {os.getloadavg()[0]:.1f}: {_line({n: median(s) for n, s in found.items()})}"
    )


def _line(rates: Mapping[str, float]) -> str:
    limit = rates["discarding"]
    return ", ".join(f"{name} {rate:.0f} MB/s ({rate / limit:.2f} of the limit)" for name, rate in rates.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when all turns could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.client_limit", description=__doc__)
    parser.add_argument("--workload", choices=[one.name for one in WORKLOADS], default="100b.1p")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=kafka.default_cache(), help="where programs are kept")
    parser.add_argument("--serve", nargs=2, type=int, metavar=("PORT", "UPSTREAM"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        _serve(*options.serve)
    home = Path(tempfile.mkdtemp(prefix="strandline-client-limit-"))
    try:
        _measure(options.workload, options.rounds, home, options.cache)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
