"""The writers of the benchmark of a cluster: each finds the leader, follows it, and tells of what is not written."""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from bench.cluster.bare_writer import BareWriter
from bench.cluster.client_writer import ClientWriter
from bench.cluster.faults import missing_records
from bench.cluster.recording import Recording, Writer
from bench.cluster.view import Unanswered, View
from bench.topics import Topics

from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from strandline.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from strandline.wire.registry import encode_response
from tests.broker import BrokerProcess, running_broker
from tests.waiting import wait_until

INTERVAL = 0.002
TOPIC = "written"


class ScriptedNodes:
    """Nodes 1 and 2, which name the leader and its epoch, and answer records as they are told; None: never."""

    def __init__(self) -> None:
        self.leader, self.epoch = 1, 0
        self.answers: dict[int, ErrorCode | None] = {1: ErrorCode.NONE, 2: ErrorCode.NONE}
        self.written: dict[int, int] = {1: 0, 2: 0}
        self.over = threading.Event()
        self.ports: dict[int, int] = {}

    def answer(self, node_id: int, key: ApiKey, version: int, correlation_id: int) -> bytes | None:
        if key is ApiKey.METADATA:
            partition = MetadataResponsePartition(
                partition_index=0, leader_id=self.leader, leader_epoch=self.epoch, replica_nodes=[1, 2], isr_nodes=[1]
            )
            brokers = [MetadataResponseBroker(node_id=node, host="127.0.0.1", port=self.ports[node]) for node in (1, 2)]
            topics = [MetadataResponseTopic(name=TOPIC, partitions=[partition])]
            return bytes(
                encode_response(key, version, correlation_id, MetadataResponse(brokers=brokers, topics=topics))
            )
        code = self.answers[node_id]
        if code is None:
            return None
        self.written[node_id] += code is ErrorCode.NONE
        told = PartitionProduceResponse(index=0, error_code=code)
        answer = ProduceResponse(responses=[TopicProduceResponse(name=TOPIC, partition_responses=[told])])
        return bytes(encode_response(key, version, correlation_id, answer))


@contextmanager
def scripted() -> Iterator[ScriptedNodes]:
    nodes = ScriptedNodes()
    with ExitStack() as servers:
        servers.callback(nodes.over.set)
        for node_id in (1, 2):
            server = servers.enter_context(_Server(("127.0.0.1", 0), _handler(nodes, node_id)))
            servers.callback(server.shutdown)
            nodes.ports[node_id] = server.server_address[1]
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield nodes


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


def _handler(nodes: ScriptedNodes, node_id: int) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while size := self.rfile.read(4):
                frame = self.rfile.read(*struct.unpack(">i", size))
                key, version, correlation_id = struct.unpack_from(">hhi", frame)
                answer = nodes.answer(node_id, ApiKey(key), version, correlation_id)
                if answer is None:
                    nodes.over.wait()
                    return
                self.wfile.write(struct.pack(">i", len(answer)) + answer)

    return Handler


def writes_on(recording: Recording) -> None:
    """Until every partition is written to after this."""
    now = time.monotonic()
    wait_until(lambda: recording.is_written_since(now), what="every partition to be written to")


def test_a_record_that_is_not_answered_goes_to_the_leader_that_is_named_next() -> None:
    with scripted() as nodes, BareWriter(nodes.ports, TOPIC, 1, INTERVAL) as writer:
        writer.recording.begin()
        nodes.answers[1] = None  # as if it were suspended
        nodes.leader, nodes.epoch = 2, 1
        writes_on(writer.recording)
        assert nodes.written[2] > 0
        assert set(writer.recording.end("suspended", 1).errors) == {"not answered by a leader that was replaced"}


def test_a_record_that_is_refused_is_repeated_until_it_is_written() -> None:
    with scripted() as nodes, BareWriter(nodes.ports, TOPIC, 1, INTERVAL) as writer:
        writer.recording.begin()
        nodes.answers[1] = ErrorCode.NOT_ENOUGH_REPLICAS
        wait_until(lambda: writer.recording.errors.get("NOT_ENOUGH_REPLICAS", 0) > 1, what="records to be refused")
        nodes.answers[1] = ErrorCode.NONE
        writes_on(writer.recording)
        assert writer.recording.end("leader", 1).unwritable == ()
        assert nodes.written[2] == 0


def test_a_leader_of_an_epoch_that_is_over_is_not_believed() -> None:
    with scripted() as nodes:
        nodes.leader, nodes.epoch = 2, 7
        with BareWriter(nodes.ports, TOPIC, 1, INTERVAL) as writer:
            nodes.leader, nodes.epoch = 1, 6
            nodes.answers[2] = ErrorCode.REQUEST_TIMED_OUT
            wait_until(lambda: writer.recording.errors.get("REQUEST_TIMED_OUT", 0) > 2, what="records to be refused")
            assert nodes.written[1] == 0


def test_a_writer_that_cannot_begin_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.cluster.recording.PATIENCE_SECONDS", 0.2)
    with scripted() as nodes:
        nodes.answers[1] = ErrorCode.NOT_ENOUGH_REPLICAS
        with pytest.raises(TimeoutError, match="NOT_ENOUGH_REPLICAS"), BareWriter(nodes.ports, TOPIC, 1, INTERVAL):
            pass


def test_a_writer_that_has_failed_says_so_at_once() -> None:
    with scripted() as nodes:
        nodes.leader = 3  # which has no port
        with pytest.raises(ExceptionGroup, match="unhandled"), BareWriter(nodes.ports, TOPIC, 1, INTERVAL):
            pass


def bare(broker: BrokerProcess) -> Writer:
    return BareWriter({1: broker.port}, TOPIC, 3, INTERVAL)


def client(broker: BrokerProcess) -> Writer:
    return ClientWriter(broker.bootstrap, TOPIC, 3, INTERVAL)


@pytest.mark.parametrize("new_writer", [bare, client])
def test_writing_goes_on_after_a_broker_was_killed_and_nothing_that_was_acknowledged_is_missing(
    new_writer: Callable[[BrokerProcess], Writer], tmp_path: Path
) -> None:
    with running_broker(tmp_path / "data") as broker:
        Topics(broker.bootstrap).create({TOPIC: 3})
        with new_writer(broker) as writer:
            writer.recording.begin()
            broker.kill()
            broker.start()
            writes_on(writer.recording)
            outage = writer.recording.end("leader", 1)
        assert outage.unwritable == ()
        assert outage.seconds > 10 * INTERVAL
        with View(broker.port) as view:
            ends = [view.end(TOPIC, number) for number in range(3)]
        assert missing_records(writer, ends) == 0
        assert missing_records(writer, [ends[0], ends[1], 0]) == writer.recording.acknowledged[2]


def test_one_broker_is_asked_what_it_shows(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker, View(broker.port) as view:
        assert view.topic(TOPIC) == []
        view.create(TOPIC, 2, 1, {"retention.ms": "1000"})
        wait_until(lambda: len(view.topic(TOPIC)) == 2)
        view.grow(TOPIC, 3)
        wait_until(lambda: len(view.topic(TOPIC)) == 3)
        assert all(one.is_whole and one.is_led_as_preferred for one in view.topic(TOPIC))
        view.configure(TOPIC, "retention.ms", "2000")
        wait_until(lambda: view.config(TOPIC, "retention.ms") == "2000")
        view.prefer(TOPIC, [0, 1])  # not needed, which is no failure
        assert {view.controller()} == view.alive()
        with pytest.raises(Unanswered, match="TOPIC_ALREADY_EXISTS"):
            view.create(TOPIC, 2, 1, {})
        view.delete(TOPIC)
        wait_until(lambda: view.topic(TOPIC) == [])
