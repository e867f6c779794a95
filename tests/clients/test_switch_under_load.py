"""A topic becomes diskless while three client libraries write and read it: nothing lost, nothing twice, no errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess, running_broker
from tests.clients import tiering
from tests.clients.switch_load import (
    MEMBERS,
    WRITERS,
    AioKafkaMember,
    ConfluentMember,
    Member,
    faults_of,
    is_dense,
    logged_errors,
    unread,
)
from tests.clients.switching import HYBRID, described_state, switch, wait_state, wait_switched
from tests.clients.two_brokers import running_cluster
from tests.crash.tiered_store import s3_settings
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.postgres import postgres, postgres_url
from tests.s3 import S3, s3
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url", "s3"]

SECONDS = 60.0
TIERED = {"remote.storage.enable": "true", "internal.segment.bytes": "20000", "local.retention.bytes": "40000"}


def all_read(groups: Mapping[str, Sequence[Member]], writers: Sequence[Writer]) -> bool:
    missing = unread(groups, writers)
    print(missing)  # the last line says why a test fails
    return not missing


def prove(broker: BrokerProcess, admin: AdminClient, topic: str, partitions: int, *, bootstrap: str) -> None:
    """Switch the topic under load, and judge what everybody saw."""
    writers = [
        writer(bootstrap, topic, f"writer-{number}", partitions, record_size=300, pause=0.002)
        for number, writer in enumerate(WRITERS)
    ]
    groups: dict[str, list[Member]] = {}
    with logged_errors() as logged:
        try:
            for writer in writers:
                writer.start()
            for number, member in enumerate(MEMBERS):
                groups[f"group-{number}"] = [member(bootstrap, topic, f"group-{number}").start()]
            wait_for_more(writers, 600 + 10 * partitions)
            switch(admin, topic)
            groups["group-0"].append(
                ConfluentMember(bootstrap, topic, "group-0").start()
            )  # shares the work from now on
            groups["during"] = [AioKafkaMember(bootstrap, topic, "during", "read_committed").start()]
            wait_for_more(writers, 200)
            found = wait_switched(broker, topic)
            groups["after"] = [ConfluentMember(bootstrap, topic, "after", "read_committed").start()]
            wait_for_more(writers, 300 + 5 * partitions)
        finally:
            for writer in writers:
                writer.stop()
        try:
            wait_until(partial(all_read, groups, writers), within=SECONDS, step=0.1, what="groups to read all records")
            errors = list(logged)  # what is said while clients are closed says nothing
        finally:
            for members in groups.values():
                for each in members:
                    each.stop()
    assert [failure for writer in writers for failure in writer.failures] == []
    assert errors == []
    stored = read_all(bootstrap, topic, partitions)
    verdict = judge(writers, stored)
    assert verdict.is_clean, str(verdict)
    assert is_dense(stored)
    for group, members in groups.items():
        assert faults_of(members, stored) == [], group
    ends = [sum(place.partition == partition for place in stored) for partition in range(partitions)]
    assert all(0 < boundary < end for boundary, end in zip(found, ends, strict=True)), "both parts have records"
    assert {partition["b0"] for partition in wait_state(broker, topic, HYBRID)["partitions"]} == set(found)
    assert described_state(admin, topic) == HYBRID


@pytest.mark.parametrize("partitions", [1, 16, 64])
def test_on_a_directory(tmp_path: Path, unique_name: Callable[[], str], partitions: int) -> None:
    with running_broker(tmp_path / "data", tiering.QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = tiering.create(admin, unique_name(), TIERED, partitions=partitions)
        prove(broker, admin, topic, partitions, bootstrap=broker.bootstrap)


def test_on_s3(tmp_path: Path, s3: S3, unique_name: Callable[[], str]) -> None:
    objects = {
        "strandline.objects.url": f"s3://{s3.new_bucket()}/wal",
        "inkless.storage.s3.endpoint.url": s3.endpoint,
        "inkless.storage.s3.region": "us-east-1",
        "inkless.storage.aws.access.key.id": "test",
        "inkless.storage.aws.secret.access.key": "test-secret",
    }
    segments = s3_settings(s3, f"s3://{s3.new_bucket()}/segments")
    with running_broker(tmp_path / "data", {**tiering.QUICK, **objects, **segments}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = tiering.create(admin, unique_name(), TIERED, partitions=4)
        prove(broker, admin, topic, 4, bootstrap=broker.bootstrap)


def test_on_two_brokers(tmp_path: Path, postgres_url: str, unique_name: Callable[[], str]) -> None:
    shared = {
        **tiering.QUICK,
        "rsm.config.url": f"file://{tmp_path}/remote",
        "strandline.objects.url": f"file://{tmp_path}/objects",
    }
    topic = unique_name()
    with running_cluster(tmp_path, postgres_url, settings=shared) as cluster:
        cluster.create(topic, partitions=6, via=1, config=TIERED)
        assert set(cluster.leaders(topic, 1)) == {1, 2}
        prove(cluster.brokers[2], cluster.admin(1), topic, 6, bootstrap=cluster.bootstrap)
