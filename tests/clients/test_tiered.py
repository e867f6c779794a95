"""Tiered topics as real clients see them: one log, wherever its segments are."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.admin.commands.main import run
from strandline.client import Cluster
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import Received
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    SMALL,
    TIERED,
    alter,
    create,
    earliest,
    first_local_offset,
    kafka_admin,
    local_logs,
    numbered,
    offset_of,
    produce,
    read,
    remote_files,
    remote_logs,
    values,
    wait_tiered,
)
from tests.waiting import wait_until

COUNT = 400
FETCH_QUOTA = "remote.log.manager.fetch.max.bytes.per.second"
START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("tiered") / "data", QUICK) as broker:
        yield broker


@pytest.fixture
def own_admin(own: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": own.bootstrap}) as opened:  # closed before the broker ends
        yield opened


@pytest.fixture
def tiered(own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]) -> str:
    """A topic with COUNT records, nearly all of them in remote storage alone."""
    topic = create(own_admin, unique_name(), {**TIERED, "retention.ms": "-1"})
    assert produce(own, topic, numbered(0, COUNT, start_ms=START_MS)) == list(range(COUNT))
    assert wait_tiered(own, topic) > COUNT * 0.8
    return topic


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_consumer_reads_everything_from_offset_0(own: BrokerProcess, tiered: str, isolation: str) -> None:
    found = read(own, tiered, COUNT, isolation=isolation)
    assert values(found) == list(range(COUNT))
    assert [record.offset for record in found] == list(range(COUNT))
    assert [record.timestamp for record in found] == [START_MS + number for number in range(COUNT)]


def test_a_consumer_begins_anywhere(own: BrokerProcess, tiered: str) -> None:
    for offset in (0, 1, 19, 20, COUNT // 2, first_local_offset(own, tiered) - 1, COUNT - 1):
        assert values(read(own, tiered, 1, offset=offset)) == [offset]


def test_offsets_by_timestamp_are_found_in_every_tier(own: BrokerProcess, own_admin: AdminClient, tiered: str) -> None:
    for number in (0, 7, COUNT // 2, first_local_offset(own, tiered), COUNT - 1):
        spec = kafka_admin.OffsetSpec.for_timestamp(START_MS + number)
        assert offset_of(own_admin, tiered, spec) == number
    assert offset_of(own_admin, tiered, kafka_admin.OffsetSpec.for_timestamp(START_MS + COUNT)) == -1
    assert earliest(own_admin, tiered) == 0
    assert offset_of(own_admin, tiered, kafka_admin.OffsetSpec.latest()) == COUNT
    assert offset_of(own_admin, tiered, kafka_admin.OffsetSpec.max_timestamp()) == COUNT - 1


def test_a_group_reads_both_tiers_and_goes_on_where_it_was(own: BrokerProcess, tiered: str) -> None:
    found: list[int] = []
    for part in (COUNT // 3, COUNT):
        consumer = Consumer(
            {
                "bootstrap.servers": own.bootstrap,
                "group.id": tiered,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([tiered])
        while len(found) < part:
            for message in consumer.consume(part - len(found), timeout=SECONDS):
                assert message.error() is None
                found.append(int((message.value() or b"").split()[0]))
        consumer.commit(asynchronous=False)
        consumer.close()
    assert found == list(range(COUNT))


def test_records_are_deleted_from_the_remote_range(own: BrokerProcess, own_admin: AdminClient, tiered: str) -> None:
    before, segments = COUNT // 2, len(remote_logs(own, tiered))
    key = TopicPartition(tiered, 0, before)
    assert own_admin.delete_records([key])[key].result(SECONDS).low_watermark == before
    assert earliest(own_admin, tiered) == before
    assert values(read(own, tiered, COUNT - before, offset=before)) == list(range(before, COUNT))
    with pytest.raises(KafkaException) as caught:
        read(own, tiered, 1, offset=before - 1)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    wait_until(lambda: len(remote_logs(own, tiered)) <= segments // 2 + 1, "segments below the log start to go")
    assert values(read(own, tiered, COUNT - before, offset=before)) == list(range(before, COUNT))


def test_remote_segments_expire_by_the_retention_of_the_topic(
    own: BrokerProcess, own_admin: AdminClient, tiered: str
) -> None:
    alter(own_admin, tiered, {"retention.bytes": "100000", "local.retention.bytes": "1"})
    wait_until(lambda: earliest(own_admin, tiered) > COUNT // 2, "the oldest segments to expire")
    wait_until(lambda: len(remote_logs(own, tiered)) < 8, "their objects to be deleted")
    start = earliest(own_admin, tiered)
    assert values(read(own, tiered, COUNT - start, offset=start)) == list(range(start, COUNT))


def test_a_deleted_topic_leaves_nothing_in_the_store(own: BrokerProcess, own_admin: AdminClient, tiered: str) -> None:
    assert remote_files(own, tiered)
    own_admin.delete_topics([tiered])[tiered].result(SECONDS)
    wait_until(lambda: not remote_files(own, tiered), f"the store to have nothing of {tiered}")


def test_a_topic_made_again_under_the_same_name_has_nothing_of_the_old_one(
    own: BrokerProcess, own_admin: AdminClient, tiered: str
) -> None:
    own_admin.delete_topics([tiered])[tiered].result(SECONDS)
    create(own_admin, tiered)
    assert produce(own, tiered, numbered(1000, 60)) == list(range(60))
    wait_tiered(own, tiered)
    assert values(read(own, tiered, 60)) == list(range(1000, 1060))


def test_a_topic_that_exists_becomes_tiered(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(own_admin, unique_name(), SMALL)
    produce(own, topic, numbered(0, 100))
    assert len(local_logs(own, topic)) > 1, "local.retention.* means nothing without tiering"
    alter(own_admin, topic, {"remote.storage.enable": "true"})
    wait_tiered(own, topic)
    assert values(read(own, topic, 100)) == list(range(100))


def test_copying_stops_and_goes_on_by_a_setting(own: BrokerProcess, own_admin: AdminClient, tiered: str) -> None:
    alter(own_admin, tiered, {"remote.log.copy.disable": "true", "local.retention.bytes": "-2"})
    copied = len(remote_logs(own, tiered))
    produce(own, tiered, numbered(COUNT, 100))
    assert len(local_logs(own, tiered)) > 3
    assert len(remote_logs(own, tiered)) == copied
    assert values(read(own, tiered, COUNT + 100)) == list(range(COUNT + 100))
    alter(own_admin, tiered, {"remote.log.copy.disable": "false", "local.retention.bytes": "1"})
    wait_tiered(own, tiered)
    assert len(remote_logs(own, tiered)) > copied
    assert values(read(own, tiered, COUNT + 100)) == list(range(COUNT + 100))


def test_tiering_is_switched_off_together_with_what_is_remote(
    own: BrokerProcess, own_admin: AdminClient, tiered: str
) -> None:
    with pytest.raises(KafkaException) as caught:
        alter(own_admin, tiered, {"remote.storage.enable": "false"})
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG
    assert "remote.log.delete.on.disable=true" in caught.value.args[0].str()
    local = first_local_offset(own, tiered)
    alter(own_admin, tiered, {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"})
    wait_until(lambda: not remote_files(own, tiered), "the store to be empty")
    wait_until(lambda: earliest(own_admin, tiered) == local, "the log to begin with what is local")
    assert values(read(own, tiered, COUNT - local, offset=local)) == list(range(local, COUNT))
    alter(own_admin, tiered, {"remote.storage.enable": "true"})
    produce(own, tiered, numbered(COUNT, 100))
    wait_until(lambda: first_local_offset(own, tiered) > COUNT, "segments to be copied again")
    assert values(read(own, tiered, COUNT + 100 - local, offset=local)) == list(range(local, COUNT + 100))


def test_consumers_miss_nothing_while_segments_are_written_copied_and_deleted_locally(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic, total = create(own_admin, unique_name()), 1500
    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(produce, own, topic, numbered(0, total))
        following = pool.submit(read, own, topic, total)
        again: list[Future[list[Received]]] = []
        while not writing.done():
            again.append(pool.submit(read, own, topic, 100))
            assert values(again[-1].result(SECONDS)) == list(range(100))
        assert values(following.result(SECONDS)) == list(range(total))
    wait_tiered(own, topic)
    assert values(read(own, topic, total)) == list(range(total))


def test_consumers_that_expiry_overtakes_go_on_at_the_new_beginning(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    total = 1500
    topic = create(own_admin, unique_name(), {**TIERED, "retention.bytes": "200000"})
    consumer = Consumer(
        {
            "bootstrap.servers": own.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 20_000,
            "queued.max.messages.kbytes": 20,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(produce, own, topic, numbered(0, total))
        while not found or found[-1] < total - 1:
            for message in consumer.consume(10, timeout=SECONDS):
                assert message.error() is None
                found.append(int((message.value() or b"").split()[0]))
        assert writing.result(SECONDS) == list(range(total))
    consumer.close()
    assert found == sorted(set(found)), "nothing twice, nothing out of order"
    jumps = [after for before, after in pairwise(found) if after != before + 1]
    assert all(offset % 20 == 0 for offset in jumps), "whole segments expire"


def test_several_partitions_are_read_together(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(own_admin, unique_name(), partitions=3)
    for partition in range(3):
        produce(own, topic, numbered(partition * 1000, 100), partition=partition)
        wait_tiered(own, topic, partition)
    consumer = Consumer({"bootstrap.servers": own.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    while sum(map(len, found.values())) < 300:
        for message in consumer.consume(300, timeout=SECONDS):
            assert message.error() is None
            found[message.partition() or 0].append(int((message.value() or b"").split()[0]))
    consumer.close()
    assert found == {partition: list(range(partition * 1000, partition * 1000 + 100)) for partition in range(3)}


@pytest.mark.parametrize("suffix", ["log", "index"])
def test_a_damaged_or_missing_object_harms_nothing_but_its_segment(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str], suffix: str
) -> None:
    topic = create(own_admin, unique_name(), partitions=2)
    for partition in range(2):
        produce(own, topic, numbered(1000 * partition, 100), partition=partition)
        wait_tiered(own, topic, partition)
    first = next(
        path for path in remote_logs(own, topic) if f"{topic}-0-" in str(path) and path.stem.startswith("0" * 20)
    )
    if suffix == "log":
        first.unlink()
    else:
        first.with_suffix(".index").write_bytes(b"no index")
    consumer = Consumer({"bootstrap.servers": own.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in consumer.consume(1, timeout=2) if message.error() is None] == []
    consumer.close()
    assert first.stem.partition("-")[2] in own.log_text, "the log names the segment"
    assert values(read(own, topic, 80, offset=20)) == list(range(20, 100))
    assert values(read(own, topic, 100, partition=1)) == list(range(1000, 1100))
    assert produce(own, topic, numbered(100, 10)) == list(range(100, 110))


def test_sizes_of_both_tiers_are_shown(own: BrokerProcess, tiered: str) -> None:
    command = [str(Path(sys.executable).with_name("strandline")), "topics", "tiers", tiered, "--json"]
    answer = subprocess.run([*command, "--bootstrap", own.bootstrap], check=True, capture_output=True, text=True)
    (partition,) = json.loads(answer.stdout)["partitions"]
    local = first_local_offset(own, tiered)
    assert partition["remote"]["from_offset"] == 0
    assert partition["remote"]["to_offset"] == local
    assert partition["local"]["from_offset"] == local
    assert partition["local"]["to_offset"] == COUNT
    assert partition["remote"]["bytes"] == sum(path.stat().st_size for path in remote_logs(own, tiered))


def test_people_are_told_where_everything_is_and_why(
    own: BrokerProcess, own_admin: AdminClient, tiered: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["topics", "tiers", tiered, "--segments", "-b", own.bootstrap]
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert f"0 to {first_local_offset(own, tiered) - 1}" in shown
    assert "only closed segments are copied" in shown
    assert shown.count("COPY_SEGMENT_FINISHED") == len(remote_logs(own, tiered))
    alter(own_admin, tiered, {"remote.log.copy.disable": "true", "local.retention.bytes": "-2"})
    assert run(command) == 0
    assert "remote.log.copy.disable is true" in capsys.readouterr().out
    plain = create(own_admin, f"{tiered}-plain", {})
    assert run(["topics", "tiers", plain, "-b", own.bootstrap]) == 0
    assert "remote.storage.enable is false" in capsys.readouterr().out


def test_log_directories_are_described_together_with_the_remote_storage(own: BrokerProcess, tiered: str) -> None:
    with Cluster(own.bootstrap) as cluster:
        wanted = [DescribableLogDirTopic(topic=tiered, partitions=[0])]
        answer = cluster.any().request(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=wanted))
    sizes = {row.log_dir: row.topics[0].partitions[0].partition_size for row in answer.results if row.topics}
    assert sizes == {
        str(own.data_dir / "logs"): sum(path.stat().st_size for path in local_logs(own, tiered)),
        f"file://{own.data_dir / 'remote'}": sum(path.stat().st_size for path in remote_logs(own, tiered)),
    }


def test_quotas_change_while_the_broker_runs(own: BrokerProcess, tiered: str) -> None:
    assert run(["configs", "alter", "--broker", "all", "-b", own.bootstrap, "--set", f"{FETCH_QUOTA}=1"]) == 0
    consumer = Consumer({"bootstrap.servers": own.bootstrap, "group.id": "unused", "enable.auto.commit": False})

    def is_held_up() -> bool:
        consumer.assign([TopicPartition(tiered, 0, 0)])  # from the beginning again
        consumer.consume(1, timeout=0.2)
        return _metrics(own)["strandline_remote_reads_throttled_total"] > 0

    try:
        wait_until(is_held_up, "a read to be held up")
    finally:
        consumer.close()
        assert run(["configs", "alter", "--broker", "all", "-b", own.bootstrap, "--delete", FETCH_QUOTA]) == 0
    assert values(read(own, tiered, COUNT)) == list(range(COUNT))


def test_metrics_have_the_names_of_the_kip(own: BrokerProcess, tiered: str) -> None:
    read(own, tiered, COUNT)
    numbers = _metrics(own)
    for name in ("remotefetchbytes", "remotebytesin", "remotecopybytes", "remotebytesout", "remotereadrequests"):
        assert numbers[f'kafka_server_brokertopicmetrics_{name}_total{{topic="{tiered}"}}'] > 0
    assert numbers[f'kafka_server_brokertopicmetrics_remotelogsizebytes{{topic="{tiered}"}}'] > 0
    assert "kafka_log_remote_remotestoragethreadpool_remotelogreadertaskqueuesize" in numbers


def test_the_topic_that_describes_remote_storage_has_the_partitions_that_were_asked_for(
    own_admin: AdminClient, tiered: str
) -> None:
    assert len(own_admin.list_topics(timeout=SECONDS).topics[REMOTE_LOG_METADATA_TOPIC].partitions) == 3


def _metrics(broker: BrokerProcess) -> dict[str, float]:
    with urllib.request.urlopen(f"{broker.http}/metrics", timeout=SECONDS) as answer:
        lines = [line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def _has_copied(broker: BrokerProcess, topic: str, offset: int) -> bool:
    return first_local_offset(broker, topic) > offset


@pytest.mark.parametrize("way", ["clean", "killed"])
def test_everything_is_there_after_a_restart(tmp_path: Path, way: str) -> None:
    with running_broker(tmp_path / "data", QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic, other = create(admin, "kept"), create(admin, "deleted")
        for name in (topic, other):
            produce(broker, name, numbered(0, 100))
            wait_tiered(broker, name)
        for round_ in range(1, 3):
            if way == "clean":
                broker.restart()
            else:
                broker.kill()
                broker.start()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            assert earliest(admin, topic) == 0, "the log still begins with its remote segments"
            assert values(read(broker, topic, 100 * round_)) == list(range(100 * round_))
            produce(broker, topic, numbered(100 * round_, 100))
            wait_until(partial(_has_copied, broker, topic, 100 * round_), "copies after the restart")
        assert values(read(broker, topic, 300)) == list(range(300))
        admin.delete_topics([other])[other].result(SECONDS)
        wait_until(lambda: not remote_files(broker, other), "the store to have nothing of a deleted topic")


def test_a_deletion_that_a_crash_interrupted_is_finished_after_the_restart(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = create(admin, "gone")
        produce(broker, topic, numbered(0, 200))
        wait_tiered(broker, topic)
        admin.delete_topics([topic])[topic].result(SECONDS)
        broker.kill()
        broker.start()
        wait_until(lambda: not remote_files(broker, topic), "the store to have nothing of the deleted topic")


def test_without_the_switch_of_the_broker_no_topic_is_tiered(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        with pytest.raises(KafkaException) as caught:
            create(admin, "a")
        assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG
        assert "remote.log.storage.system.enable is false" in caught.value.args[0].str()


def test_a_broker_with_tiered_topics_does_not_start_without_tiers(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", QUICK) as broker:
        create(AdminClient({"bootstrap.servers": broker.bootstrap}), "a")
        broker.stop()
        other = BrokerProcess(broker.data_dir)
        other.spawn()
        assert other.wait() != 0
    assert "There are tiered topics (a), so remote.log.storage.system.enable has to be true" in other.log_text


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("rsm.config.url", "ftp://x", "rsm.config.url cannot be used. "),
        ("rsm.config.url", "s3://me:hush@bucket", "An address must not hold credentials"),
        ("remote.log.storage.manager.class.name", "org.apache.kafka.X", "Java classes cannot be used"),
        ("remote.log.metadata.manager.class.name", "no.such.Class", "cannot be loaded: No module named 'no'"),
    ],
)
def test_a_storage_that_cannot_be_used_ends_the_start_with_a_sentence(
    tmp_path: Path, setting: str, value: str, sentence: str
) -> None:
    broker = BrokerProcess(tmp_path / "data", settings={"remote.log.storage.system.enable": "true", setting: value})
    broker.spawn()
    assert broker.wait() == 1
    assert sentence in broker.log_text.splitlines()[-1]
    assert "hush" not in broker.log_text
