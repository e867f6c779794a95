"""What a real broker answers at `/metrics`, with topics of every kind."""

from __future__ import annotations

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.heartbeat import HeartbeatRequest
from tests.admin.http.scrapes import scrape
from tests.broker import BrokerProcess
from tests.server.handlers.conftest import create_topic
from tests.server.handlers.test_fetch import fetch, wanted
from tests.server.handlers.test_traffic import KINDS, broker, client, put
from tests.waiting import wait_until

__all__ = ["broker", "client"]


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_of_every_kind_count(client: Client, broker: BrokerProcess, kind: str) -> None:
    before = scrape(broker)
    topic = create_topic(client, f"scraped-{kind}", partitions=3, configs=KINDS[kind])
    size, _ = put(client, topic, b"x" * 1000, count=9)
    request = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=4)])
    client.request(ApiKey.DELETE_RECORDS, DeleteRecordsRequest(topics=[request], timeout_ms=5000))

    def after(*sample: str) -> float | None:
        return scrape(broker).get(sample)

    created = 3 + (50 if kind == "tiered" else 0)  # the first tiered topic brings the topic of its metadata, some time
    counts = {
        name: before[name,] + created
        for name in (
            "kafka_server_replicamanager_leadercount",
            "kafka_server_replicamanager_partitioncount",
            "kafka_controller_kafkacontroller_globalpartitioncount",
        )
    }
    wait_until(lambda: {name: after(name) for name in counts} == counts, what=f"{counts} in /metrics")
    assert after("kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    # What the control plane says of a diskless partition may be a few seconds old.
    wait_until(lambda: after("kafka_log_log_logstartoffset", topic, "0") == 4, what="the log start in /metrics")
    now = scrape(broker)
    assert now["kafka_log_log_logendoffset", topic, "0"] == 9
    assert now["kafka_log_log_size", topic, "0"] == size
    assert now["kafka_log_log_size", topic, "2"] == 0
    assert now["kafka_server_brokertopicmetrics_bytesin_total", topic] == size
    assert now["kafka_server_brokertopicmetrics_bytesinpersec", topic] == size
    for name in ("underminisr", "underreplicated"):
        assert now[f"kafka_cluster_partition_{name}", topic, "1"] == 0
    assert now["kafka_cluster_partition_insyncreplicascount", topic, "1"] == 1
    assert now["kafka_cluster_partition_atminisr", topic, "1"] == (kind != "diskless")


def test_requests_are_counted_and_timed(client: Client, broker: BrokerProcess) -> None:
    topic = create_topic(client, "timed")
    before = scrape(broker)
    for _ in range(5):
        put(client, topic, b"x")
    put(client, "nowhere", b"x")
    fetch(client, topic, wanted(0, 5), wait_ms=300)  # there is nothing at the end: it waits
    client.request(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="none", member_id="none"), version=4)
    after = scrape(broker)

    def more(name: str, *labels: str) -> float:
        sample = (name, *labels)
        return after[sample] - before.get(sample, 0)

    requests = "kafka_network_requestmetrics_"
    assert more(requests + "requests_total", "Produce", "12") == 6
    assert more(requests + "requestspersec", "Produce", "12") == 6
    assert more(requests + "errors_total", "Produce", "UNKNOWN_TOPIC_OR_PARTITION") == 1
    errors = [sample for sample in after if sample[:2] == (requests + "errors_total", "Heartbeat")]
    assert sum(more(*sample) for sample in errors) == 1
    for part in ("totaltimems", "localtimems", "remotetimems", "requestqueuetimems", "responsesendtimems"):
        assert more(f"{requests}{part}_count", "Produce") == 6
        assert more(f"{requests}{part}_count", "FetchConsumer") == 1
    assert more(requests + "remotetimems_sum", "Fetch") >= 299
    assert more(requests + "totaltimems_sum", "Fetch") >= more(requests + "remotetimems_sum", "Fetch")
    assert more("strandline_request_seconds_bucket", "Fetch", "total", "0.134217728") == 0
    assert more("strandline_request_seconds_count", "Fetch", "total") == 1
    assert after[requests + "totaltimems", "Fetch", "0.999"] > 150
    assert after[requests + "totaltimems_count", "FetchFollower"] == 0
    assert 0 <= after["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",] <= 1


def test_connections_and_groups_count(client: Client, broker: BrokerProcess) -> None:
    before = scrape(broker)
    client.request(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="none", member_id="none"), version=4)
    host, port = broker.bootstrap.rsplit(":", 1)
    with Client.connect(host, int(port)) as another:
        another.request(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="none", member_id="none"), version=4)
        during = scrape(broker)
    sockets = "kafka_server_socket_server_metrics_"
    listener = next(labels[0] for name, *labels in during if name == sockets + "connection_count")
    assert during[sockets + "connection_count", listener] >= 2
    created = (sockets + "connection_creation_total", listener)
    assert during[created] == before[created] + 1
    closed = (sockets + "connection_close_total", listener)
    wait_until(lambda: scrape(broker)[closed] > before[closed], what="the connection to be closed")
    assert during["kafka_coordinator_group_groupmetadatamanager_numgroupsstable",] == 0
