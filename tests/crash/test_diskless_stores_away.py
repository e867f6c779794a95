"""Brokers lose the connection to their database or to their object store while producers write to diskless topics."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.admin.commands.main import run
from strandline.clock import SystemChance, SystemClock
from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import running_broker
from tests.clients.two_brokers import running_cluster
from tests.crash.test_diskless_crash_points import CLEAN_AT_ONCE, SMALL_OBJECTS
from tests.crash.writers import Place, Writer, judge, read_all, wait_for_more
from tests.link import Link
from tests.postgres import postgres, postgres_url
from tests.s3 import S3, s3
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic

__all__ = ["postgres", "postgres_url", "s3"]

PARTITIONS = 3
BATCH = 4
RETRIABLE = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Wanderer(Writer):
    """An idempotent producer that sends batch after batch, each to any broker, and after an error to any again.

    Now and then it does not wait for the answer, so that both brokers have the same batch at the same time.
    """

    ports: tuple[int, ...] = ()

    def _run(self) -> None:
        self._sequences = [0] * PARTITIONS
        with Client.connect("127.0.0.1", self.ports[0]) as client:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            self._id = client.request(ApiKey.INIT_PRODUCER_ID, request).producer_id
        number = 0
        while not self._stopping.is_set():
            partition = number % PARTITIONS
            values = [f"{self.name} {number * BATCH + index} " for index in range(BATCH)]
            attempt = partial(self._try, partition, values)
            offset = wait_until(attempt, within=30.0, what="an answer") - 1
            for index, value in enumerate(values):
                self.acknowledged[value] = Place(partition, offset + index)
            self._sequences[partition] += BATCH
            number += 1

    def _try(self, partition: int, values: list[str]) -> int | None:
        """One more than the offset, because that may be 0; None if it has to be tried again."""
        now_ms = SystemClock().now_ms()  # an older one would make it a case for retention
        batch = build_batch(
            [Record(index, now_ms, None, value.encode()) for index, value in enumerate(values)],
            producer_id=self._id,
            producer_epoch=0,
            base_sequence=self._sequences[partition],
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topic = TopicProduceData(name=self.topic, partition_data=[data])
        chance = SystemChance()
        port = self.ports[chance.below(len(self.ports))]
        patience = 30.0 if chance.below(4) else 0.02
        try:
            with Client.connect("127.0.0.1", port, timeout_s=patience) as client:
                request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=[topic])
                answer = client.request(ApiKey.PRODUCE, request, version=12).responses[0].partition_responses[0]
        except TimeoutError:
            return None  # while the broker goes on with it
        if answer.error_code == ErrorCode.NONE:
            return int(answer.base_offset) + 1
        assert ErrorCode(answer.error_code) in RETRIABLE, answer.error_message
        return None


def assert_all_there(writers: list[Writer], found: dict[Place, str], partitions: int) -> None:
    """Every acknowledged record once, at its offset, in order; no offset missing."""
    assert [failure for writer in writers for failure in writer.failures] == []
    verdict = judge(writers, found)
    assert verdict.is_clean, str(verdict)
    for partition in range(partitions):
        offsets = sorted(place.offset for place in found if place.partition == partition)
        assert offsets == list(range(len(offsets)))


@pytest.mark.timeout(240)
def test_commits_whose_answers_are_lost_happen_once_whichever_broker_is_asked_again(
    tmp_path: Path, postgres_url: str, start_writers: Callable[..., list[Writer]]
) -> None:
    database = urlsplit(postgres_url)
    (directory,) = parse_qs(database.query)["host"]
    with Link(f"{directory}/.s.PGSQL.5432") as link:
        url = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        shared = {**SMALL_OBJECTS, "strandline.objects.url": f"file://{tmp_path}/objects"}
        with running_cluster(tmp_path, url, settings=shared) as cluster:
            cluster.create("numbers", partitions=PARTITIONS, via=1, config={"diskless.enable": "true"})
            wanderers: list[Writer] = []
            for number in range(3):
                wanderer = Wanderer(cluster.bootstrap, "numbers", f"wanderer-{number}", PARTITIONS)
                wanderer.ports = tuple(broker.port for broker in cluster.brokers.values())
                wanderers.append(wanderer)
            writers = start_writers(cluster.bootstrap, "numbers", count=2, partitions=PARTITIONS)
            try:
                for one in wanderers:
                    one.start()
                wait_for_more([*writers, *wanderers], 500)
                link.lose_answers(b"COMMIT", every=10)
                wait_until(lambda: link.lost >= 12, within=60.0, what="lost answers")
                for _ in range(3):
                    link.go_down()
                    link.come_back()
                    wait_for_more(wanderers, 20)
                link.lose_answers(b"", every=0)
                wait_for_more([*writers, *wanderers], 500)
            finally:
                for one in (*writers, *wanderers):
                    one.stop()
            for broker in cluster.brokers.values():
                found = read_all(broker.bootstrap, "numbers", PARTITIONS)
                assert_all_there([*writers, *wanderers], found, PARTITIONS)


@pytest.mark.timeout(240)
def test_an_object_store_that_is_away_for_a_while_costs_no_record_and_leaves_no_object(
    tmp_path: Path, s3: S3, start_writers: Callable[..., list[Writer]], capsys: pytest.CaptureFixture[str]
) -> None:
    with Link(("127.0.0.1", s3.port)) as link:
        store = {
            "strandline.objects.url": f"s3://{s3.new_bucket()}/numbers",
            "inkless.storage.s3.endpoint.url": f"http://127.0.0.1:{link.port}",
            "inkless.storage.s3.region": "us-east-1",
            "inkless.storage.aws.access.key.id": "test",
            "inkless.storage.aws.secret.access.key": "test-secret",
        }
        data = tmp_path / "data"
        with running_broker(data, {**store, "strandline.objects.orphan.scan.interval.ms": "0"}) as broker:
            with connected(broker.bootstrap) as connection:
                create_topic(connection, "numbers", partitions=2, diskless_enable="true")
            writers = start_writers(broker.bootstrap, "numbers", count=2)
            wait_for_more(writers, 200)
            link.lose_answers(b"PUT ", every=4)
            wait_until(lambda: link.lost >= 5, within=60.0, what="lost answers")
            link.lose_answers(b"", every=0)
            link.go_down()
            broker.kill()  # with uploads on their way
            broker.start()  # without its store
            link.come_back()
            wait_for_more(writers, 500)
            for writer in writers:
                writer.stop()
            found = read_all(broker.bootstrap, "numbers", 2)
            assert_all_there(writers, found, 2)
            assert broker.stop() == 0
        with running_broker(data, {**store, **CLEAN_AT_ONCE}) as broker:
            assert read_all(broker.bootstrap, "numbers", 2) == found

            def clean() -> bool:
                assert broker.stop() == 0
                capsys.readouterr()
                options = [part for name, value in store.items() for part in ("--set", f"{name}={value}")]
                run(["fsck", "--deep", "--json", "--grace", "0", "--data-dir", str(data), *options])
                findings = json.loads(capsys.readouterr().out)["findings"]
                assert {finding["kind"] for finding in findings} <= {"orphan", "overdue"}
                if findings:
                    broker.start()
                return not findings

            wait_until(clean, within=60.0, what="every object to be one that something refers to")
