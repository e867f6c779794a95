"""HTTP: health, readiness, metrics, the status page, and running inside the broker's event loop."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from strandline.admin.http.listener import bind_http
from strandline.admin.http.server import build_app, open_http
from strandline.admin.load import LoadStatus
from strandline.admin.partition_rows import PartitionRow
from strandline.admin.status import BrokerRow, BrokerStatus, DisklessStatus, GroupRow, LogDirRow, Readiness, TopicRow
from strandline.diskless.writer import WriterTotals
from strandline.health import Health
from strandline.hybrid.traffic import TrafficTotals
from strandline.model import ZERO_UUID, TopicIdPartition, TopicPartition
from strandline.objects import OperationStatus
from strandline.remote.manager import PartitionTierStatus, SegmentRow, SegmentTier, TopicTierStatus
from strandline.remote.reader.status import TopicReads
from strandline.remote.storage import StorageOperationStatus
from strandline.server.times import PARTS, ApiTimesStatus, Distribution
from strandline.server.times.distributions import BUCKETS
from strandline.server.times.recording import FOLLOWER_FETCH
from strandline.testing.clock import VirtualClock
from tests.admin.http.conversions import Conversions
from tests.admin.http.statuses import CLEANER, diskless_tier, tiered
from tests.admin.http.switches import Switches

NO_TIMES = dict.fromkeys(PARTS, Distribution([0] * BUCKETS, 0, [0] * BUCKETS))
# 90 requests of 2.1 to 4.2 ms and 10 of 8.4 to 16.8 ms, of which the last minutes had one.
TIMES = Distribution([0] * 9 + [90, 0, 10] + [0] * (BUCKETS - 12), 400_000_000, [0] * 11 + [1] + [0] * (BUCKETS - 12))
REQUESTS = {
    0: ApiTimesStatus({9: 8, 13: 92}, {3: 2}, {**NO_TIMES, "total": TIMES}),
    1: ApiTimesStatus({13: 5}, {}, {**NO_TIMES, "total": TIMES}),
    FOLLOWER_FETCH: ApiTimesStatus({17: 1}, {}, {**NO_TIMES, "total": TIMES}),
}

READY = BrokerStatus(
    version="1.2.3",
    node_id=4,
    cluster_id="a<b",
    uptime_s=125,
    listeners=("PLAINTEXT://127.0.0.1:9092",),
    controller_id=4,
    controller_epoch=2,
    metadata_offset=17,
    brokers=(BrokerRow(node_id=4, address="h:9092", rack="r"), BrokerRow(node_id=5, address="i:9092", is_fenced=True)),
    topics=3,
    partitions=12,
    local_partitions=10,
    led_partitions=9,
    offline_partitions=1,
    groups=2,
    connections=6,
    requests={"PRODUCE": 8, "FETCH": 9},
    cleaner=CLEANER,
    topic_rows=(TopicRow(name="tides", partitions=2, bytes=700, traffic=TrafficTotals(messages_in=42)),),
    traffic=TrafficTotals(messages_in=50),
    load=LoadStatus(requests=REQUESTS, idle=0.75, connections={"PLAINTEXT": 6}),
    log_dirs=(LogDirRow(path="/d/<one>", partitions=10, bytes=1234), LogDirRow(path="/d/two", is_online=False)),
)


class Source:
    """A broker that says what the test wants."""

    def __init__(self) -> None:
        self.migrations = Switches()
        self.topic_settings = self.migrations
        self.tiering = Conversions()
        self.now = READY
        self.tiered: dict[str, tuple[PartitionTierStatus, ...]] = {}
        self.rows: tuple[PartitionRow, ...] = (PartitionRow("tides", 0, size=700, start=3, end=45, segments=1),)

        self.looks = 0

    def status(self) -> BrokerStatus:
        self.looks += 1
        return self.now

    def readiness(self) -> Readiness:
        now = self.now
        return Readiness(
            not_ready_because=now.not_ready_because,
            dependencies=now.dependencies,
            leaderless=now.leaderless,
            clock_problem=now.clock_problem,
        )

    @property
    def monitoring(self) -> Source:
        return self

    def group_rows(self) -> tuple[GroupRow, ...]:
        return (GroupRow(group_id="g<", state="Stable", topics=("tides",), lag=1234567, unknown_partitions=2),)

    async def tiers(self, topic: str) -> tuple[PartitionTierStatus, ...] | None:
        return None if self.now.tiered is None else self.tiered.get(topic, ())

    def partition_rows(self) -> tuple[PartitionRow, ...]:
        return self.rows

    async def refresh(self) -> None:
        pass


def plain(page: httpx.Response) -> str:
    """The page without attributes of cells, and with spaces that are spaces."""
    return re.sub(r"<td[^>]*>", "<td>", page.text).replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.fixture
def source() -> Source:
    return Source()


@pytest_asyncio.fixture
async def client(source: Source) -> AsyncIterator[httpx.AsyncClient]:
    registry = CollectorRegistry()
    async with (
        open_http(source, registry, bind_http("127.0.0.1", 0)) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}") as http,
    ):
        yield http


async def test_healthz_answers_while_the_loop_runs(client: httpx.AsyncClient) -> None:
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


async def test_readyz_follows_the_broker_and_gives_the_reasons(client: httpx.AsyncClient, source: Source) -> None:
    source.now = replace(READY, not_ready_because=("fenced by the controller", "loading logs"))
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "fenced by the controller\nloading logs\n")
    source.now = READY
    assert (await client.get("/readyz")).status_code == 200
    assert not source.looks, "probes ask all the time: they are not to look at every topic"


async def test_what_is_away_is_named_everywhere_and_does_not_make_the_broker_unready(
    client: httpx.AsyncClient, source: Source
) -> None:
    clock = VirtualClock()
    store = Health("diskless", "the object store", "s3://<b>", clock)
    database = Health("database", "the database", "postgresql://db", clock)
    database.answered()
    store.failed("There is no such bucket.", is_certain=True)
    await clock.advance(70)
    unasked = Health("remote", "remote storage", "s3://c", clock)
    source.now = replace(READY, dependencies=(database.status(), store.status(), unasked.status()))
    answer = await client.get("/readyz")
    assert answer.status_code == 200
    ready, away = answer.text.splitlines()
    assert ready == "ready"
    assert re.fullmatch(
        r"The object store \(s3://<b>\) is away since [-\d]+ [:\d]+ UTC, for 1 min 10 s: There is no such bucket\.",
        away,
    )
    page = plain(await client.get("/"))
    assert "<td>the object store</td><td>s3://&lt;b&gt;</td><td>away for 1 min 10 s</td>" in page
    assert "There is no such bucket." in page
    metrics = (await client.get("/metrics")).text
    assert 'strandline_dependency_up{name="database"} 1.0' in metrics
    assert 'strandline_dependency_up{name="diskless"} 0.0' in metrics
    assert 'strandline_dependency_up{name="remote"}' not in metrics
    assert 'strandline_dependency_away_seconds{name="diskless"} 70.0' in metrics
    row = (await client.get("/status")).json()["dependencies"][1]
    assert (row["name"], row["state"], row["problem"]) == ("diskless", "away", "There is no such bucket.")
    source.now = replace(source.now, not_ready_because=("fenced by the controller",))
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.text.splitlines()) == (503, ["fenced by the controller", away])


async def test_partitions_without_a_leader_are_named_and_red_and_do_not_make_the_broker_unready(
    client: httpx.AsyncClient, source: Source
) -> None:
    source.now = replace(
        READY, offline_partitions=1, leaderless=("1 partition has no leader: a<b-0.",), clock_problem="It is late."
    )
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.text) == (200, "ready\n1 partition has no leader: a<b-0.\nIt is late.\n")
    page = (await client.get("/")).text
    assert '<p class="away">1 partition has no leader: a&lt;b-0.</p>' in page
    assert '<p class="away">It is late.</p>' in page
    assert '<b class="bad">1</b><span>without a leader</span>' in page
    source.now = replace(READY, offline_partitions=0)
    assert "<b>0</b><span>without a leader</span>" in (await client.get("/")).text


async def test_metrics_are_what_prometheus_reads(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert values["kafka_server_replicamanager_leadercount",] == 9
    assert values["kafka_server_kafkaserver_brokerstate",] == 3
    assert values["kafka_controller_kafkacontroller_activecontrollercount",] == 1
    assert values["kafka_controller_kafkacontroller_activebrokercount",] == 1
    assert values["kafka_controller_kafkacontroller_fencedbrokercount",] == 1
    assert values["kafka_log_logmanager_offlinelogdirectorycount",] == 1
    assert values["strandline_log_dir_bytes", "/d/<one>"] == 1234
    assert values["kafka_network_requestmetrics_requests_total", "Produce", "9"] == 8
    assert values["kafka_network_requestmetrics_errors_total", "Produce", "UNKNOWN_TOPIC_OR_PARTITION"] == 2
    assert 8.39 < values["kafka_network_requestmetrics_totaltimems", "Produce", "0.5"] < 16.8
    assert values["kafka_network_requestmetrics_totaltimems_sum", "Produce"] == 400
    assert values["kafka_network_requestmetrics_totaltimems_count", "Produce"] == 100
    assert values["kafka_network_requestmetrics_totaltimems_count", "Fetch"] == 200
    assert values["kafka_network_requestmetrics_totaltimems_count", "FetchFollower"] == 100
    assert values["kafka_network_requestmetrics_remotetimems", "Produce", "0.99"] == 0
    assert values["strandline_request_seconds_bucket", "Produce", "total", "0.004194304"] == 90
    assert values["strandline_request_seconds_bucket", "Produce", "total", "+Inf"] == 100
    assert values["strandline_request_seconds_sum", "Produce", "total"] == 0.4
    assert values["kafka_network_socketserver_networkprocessoravgidle_percent",] == 0.75
    assert values["kafka_server_socket_server_metrics_connection_count", "PLAINTEXT"] == 6
    assert values["kafka_server_brokertopicmetrics_messagesin_total", "tides"] == 42
    assert values["kafka_server_brokertopicmetrics_messagesin_total", ""] == 50
    assert values["kafka_log_log_size", "tides", "0"] == 700
    assert values["kafka_log_log_logstartoffset", "tides", "0"] == 3
    assert values["process_resident_memory_bytes",] > 0


async def test_the_status_page_escapes_what_it_shows(client: httpx.AsyncClient, source: Source) -> None:
    page = plain(await client.get("/"))
    assert "Ready</span> for 2 min 5 s" in page
    assert "a&lt;b" in page
    assert "/d/&lt;one&gt;" in page
    assert "<td>tides</td><td>classic</td><td>2</td><td>700 B</td><td>0.3/s</td><td>0 B/s</td><td>0 B/s</td>" in page
    assert "<td>g&lt;</td><td>Stable</td><td>tides</td><td>1 234 567 and 2 partitions elsewhere</td>" in page
    source.now = replace(READY, not_ready_because=("<script>",))
    assert "<li>&lt;script&gt;</li>" in (await client.get("/")).text


async def test_diskless_topics_show_once_there_are_some(client: httpx.AsyncClient, source: Source) -> None:
    assert "Diskless topics" not in (await client.get("/")).text
    tier = diskless_tier(
        url="s3://b/<p>",
        totals=WriterTotals(files=5, bytes=2048, batches=7, batches_refused=1),
        hot_bytes=1024,
        operations={"put": OperationStatus(6, 1, 0, 0, 0, 0)},
    )
    source.now = replace(READY, diskless=DisklessStatus(topics=2, partitions=9, tier=tier))
    page = plain(await client.get("/"))
    assert "<td>s3://b/&lt;p&gt;</td><td>2</td><td>9</td><td>5 (2.0 KB)</td><td>1.0 KB</td>" in page
    metrics = (await client.get("/metrics")).text
    assert "strandline_diskless_partitions 9.0" in metrics
    assert 'strandline_diskless_batches_total{outcome="refused"} 1.0' in metrics
    assert 'strandline_diskless_object_requests_total{operation="put"} 6.0' in metrics
    assert (await client.get("/status")).json()["diskless"]["object_calls"]["put"]["errors"] == 1


async def test_tiered_storage_shows_where_there_is_some(client: httpx.AsyncClient, source: Source) -> None:
    assert "Tiered topics" not in (await client.get("/")).text
    source.now = replace(
        READY,
        tiered=tiered(
            url="s3://b/<p>",
            stored={"t<": TopicTierStatus(metadata_count=3, remote_bytes=4096, copy_lag_segments=1, copy_bytes=8)},
            reads={"t<": TopicReads(bytes=7), "led elsewhere now": TopicReads(requests=1)},
            reads_waiting=2,
            operations={"copy": StorageOperationStatus(6, 0, 0, 0, 0, 1, 1.5, None)},
        ),
    )
    page = plain(await client.get("/"))
    assert "s3://b/&lt;p&gt;" in page
    assert "<td>t&lt;</td><td>3</td><td>4.1 KB</td><td>1 (0 B)</td><td>0 (0 B)</td>" in page
    assert "<td>led elsewhere now</td><td>0</td><td>0 B</td><td>0 (0 B)</td><td>0 (0 B)</td>" in page
    metrics = (await client.get("/metrics")).text
    for name, value in (("remotebytesin", 7), ("remotefetchbytes", 7), ("remotebytesout", 8), ("remotecopybytes", 8)):
        assert f'kafka_server_brokertopicmetrics_{name}_total{{topic="t<"}} {value}.0' in metrics
    assert "kafka_log_remote_remotestoragethreadpool_remotelogreadertaskqueuesize 2.0" in metrics
    assert 'kafka_server_brokertopicmetrics_remotecopybytes_total{topic="led elsewhere now"} 0.0' in metrics
    assert 'strandline_remote_storage_oldest_pending_seconds{operation="copy"} 1.5' in metrics


async def test_where_the_segments_of_a_topic_are(client: httpx.AsyncClient, source: Source) -> None:
    answer = await client.get("/topics/a/tiers")
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "remote.log.storage.system.enable is false on this broker"},
    )
    source.now = replace(READY, tiered=tiered(url="s3://b"))
    assert (await client.get("/topics/a/tiers")).json() == {"partitions": []}
    source.tiered["a"] = (
        PartitionTierStatus(
            partition=TopicIdPartition(ZERO_UUID, TopicPartition("a", 0)),
            log_start_offset=0,
            local_log_start_offset=10,
            highest_offset_in_remote_storage=9,
            log_end_offset=12,
            segments=(SegmentRow(0, 9, 100, "COPY_SEGMENT_FINISHED", SegmentTier.REMOTE),),
            segments_left_out=7,
            segments_by_state={"COPY_SEGMENT_FINISHED": 8},
            local_bytes=20,
            remote_bytes=100,
            pending_segments=0,
            pending_bytes=0,
            deleting_segments=0,
            local_because="it is the active segment",
            local_from=10,
            copying_seconds=None,
            failures_in_a_row=0,
            last_error=None,
        ),
    )
    (found,) = (await client.get("/topics/a/tiers")).json()["partitions"]
    assert found["segments"] == [
        {"start_offset": 0, "end_offset": 9, "bytes": 100, "state": "COPY_SEGMENT_FINISHED", "tier": "remote"}
    ]
    assert found["segments_left_out"] == 7
    assert (found["local_from"], found["local_because"]) == (10, "it is the active segment")
    assert (found["partition"], found["highest_remote_offset"], found["remote_segments"]) == (0, 9, 8)


async def test_the_status_as_json(client: httpx.AsyncClient) -> None:
    status = (await client.get("/status")).json()
    assert status["is_ready"] is True
    assert status["brokers"][1] == {"node_id": 5, "address": "i:9092", "rack": None, "is_fenced": True}


async def test_other_paths_and_methods_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nowhere")).status_code == 404
    assert (await client.post("/healthz")).status_code == 405


async def test_an_address_in_use_is_named(source: Source) -> None:
    async with open_http(source, CollectorRegistry(), bind_http("127.0.0.1", 0)) as (host, port):
        with pytest.raises(OSError, match=f"strandline.http.listen={host}:{port} cannot be used"):
            bind_http(host, port)


async def test_leaving_the_block_ends_open_connections_and_leaves_signals_alone(source: Source) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    registry = CollectorRegistry()
    async with open_http(source, registry, bind_http("127.0.0.1", 0)) as (host, port):
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert (await reader.read()).endswith(b"ok\n")
    writer.close()
    await writer.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)
    assert list(registry.collect()) == []


async def test_the_application_works_without_a_socket(source: Source) -> None:
    transport = httpx.ASGITransport(app=build_app(source, CollectorRegistry()))
    async with httpx.AsyncClient(transport=transport, base_url="http://broker") as http:
        assert json.loads((await http.get("/status")).text)["topics"] == 3
