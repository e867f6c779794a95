"""Stores that settings name are checked at the start and shown; classic topics do not wait for them."""

from __future__ import annotations

import os
import socket
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from strandline.model import REMOTE_LOG_METADATA_TOPIC
from tests.broker import BrokerProcess, free_port, running_broker
from tests.clients.tiering import QUICK, numbered, produce, wait_tiered
from tests.clients.tiering import create as create_tiered
from tests.hybrid.test_starting import create, ready, write
from tests.link import Link
from tests.s3 import S3, s3
from tests.waiting import wait_until

__all__ = ["s3"]

DENIED = b"<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist.</Message></Error>"


def diskless(url: str, endpoint: str) -> Mapping[str, str]:
    return {
        "strandline.objects.url": url,
        "inkless.storage.s3.endpoint.url": endpoint,
        "inkless.storage.s3.region": "us-east-1",
        "inkless.storage.s3.api.call.attempt.timeout": "1500",
        "inkless.storage.aws.access.key.id": "test",
        "inkless.storage.aws.secret.access.key": "test-secret",
    }


def remote(url: str, endpoint: str) -> Mapping[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "rsm.config.url": url,
        "rsm.config.storage.s3.endpoint.url": endpoint,
        "rsm.config.storage.s3.region": "us-east-1",
        "rsm.config.storage.aws.access.key.id": "test",
        "rsm.config.storage.aws.secret.access.key": "test-secret",
    }


def named(broker: BrokerProcess, *words: str) -> str:
    """Wait until `/readyz` has all these words; what it says."""
    wait_until(lambda: all(word in ready(broker) for word in words), what=f"{words} in:\n{ready(broker)}")
    return ready(broker)


def up(broker: BrokerProcess) -> dict[str, float]:
    """`strandline_dependency_up` by name."""
    with urllib.request.urlopen(f"{broker.http}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith("strandline_dependency_up{")]
    return {line.partition('name="')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in found}


@contextmanager
def refusing_service() -> Iterator[str]:
    """An S3 service that knows no key."""
    answer = (
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
    )

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # closed
            with client:
                client.recv(65536)
                client.sendall(answer % (len(DENIED), DENIED))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_a_wrong_endpoint_is_named_and_classic_topics_are_served(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    settings = {**diskless("s3://shells/beach", endpoint), **remote("s3://dunes", endpoint)}
    with running_broker(tmp_path / "data", settings) as broker:
        create(broker, "classic")
        assert write(broker, "classic") is None
        text = named(broker, "inkless.storage.s3.endpoint.url", "rsm.config.storage.s3.endpoint.url")
        assert text.startswith("ready\n")
        assert text.count(endpoint) >= 2
        assert "s3://shells/beach" in text
        assert "s3://dunes" in text
        assert "test-secret" not in text
        assert up(broker) == {"database": 1, "diskless": 0, "remote": 0}
        with pytest.raises(KafkaException, match=r"inkless\.storage\.s3\.endpoint\.url"):
            create(broker, "t", diskless_enable="true")


def test_a_wrong_bucket_is_named_until_it_exists(tmp_path: Path, s3: S3) -> None:
    name = f"{s3.new_bucket()}-later"
    settings = {**diskless(f"s3://{name}", s3.endpoint), **remote(f"s3://{name}/segments", s3.endpoint)}
    with running_broker(tmp_path / "data", settings) as broker:
        named(broker, "there is no such bucket", "See strandline.objects.url", "See rsm.config.url")
        with urllib.request.urlopen(urllib.request.Request(f"{s3.endpoint}/{name}", method="PUT"), timeout=30):
            pass
        wait_until(lambda: ready(broker) == "ready\n", what="the stores to be back")
        assert up(broker) == {"database": 1, "diskless": 1, "remote": 1}
        assert "answers again" in broker.log_text
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None


def test_a_wrong_key_is_named(tmp_path: Path) -> None:
    with (
        refusing_service() as endpoint,
        running_broker(tmp_path / "data", {**diskless("s3://b", endpoint), **remote("s3://c", endpoint)}) as broker,
    ):
        named(broker, "inkless.storage.aws.access.key.id", "rsm.config.storage.aws.access.key.id", "InvalidAccessKeyId")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_writable_is_named(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    objects.mkdir(mode=0o555)
    with running_broker(tmp_path / "data", {"strandline.objects.url": f"file://{objects}"}) as broker:
        named(broker, "Permission denied", "strandline.objects.url", str(objects))


def test_a_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    objects.write_text("in the way")
    with running_broker(tmp_path / "data", {"strandline.objects.url": f"file://{objects}"}) as broker:
        create(broker, "classic")
        assert write(broker, "classic") is None
        named(broker, f"{objects} is not a directory", "strandline.objects.url")
        objects.unlink()
        wait_until(lambda: ready(broker) == "ready\n", what="the store to be back")


@pytest.mark.timeout(120)
def test_a_store_that_hangs_does_not_hold_up_the_start(tmp_path: Path, s3: S3) -> None:
    with Link(("127.0.0.1", s3.port)) as link:
        settings = diskless(f"s3://{s3.new_bucket()}", f"http://127.0.0.1:{link.port}")
        with running_broker(tmp_path / "data", settings) as broker:
            create(broker, "classic")
            create(broker, "t", diskless_enable="true")
            assert write(broker, "t") is None
            link.hang()
            wait_until(lambda: up(broker)["diskless"] == 0, what="the store to be away")
            assert "See inkless.storage.s3.endpoint.url" in ready(broker)
            broker.kill()
            broker.start()
            assert write(broker, "classic", message_timeout_ms=20_000) is None
            assert "diskless topics are kept in" not in broker.log_text.rpartition("registered broker")[2]
            link.come_back()
            assert write(broker, "t") is None
            wait_until(lambda: ready(broker) == "ready\n", what="the store to be back")


def test_remote_storage_that_is_away_at_the_first_start_is_recorded_when_it_is_back(tmp_path: Path, s3: S3) -> None:
    """Remote log metadata without a recorded storage would be that of an earlier version, whose segments are sought."""
    name = f"{s3.new_bucket()}-later"
    settings = {**QUICK, **remote(f"s3://{name}/segments", s3.endpoint)}
    with running_broker(tmp_path / "data", settings) as broker:
        named(broker, "there is no such bucket")
        with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            create_tiered(admin, "t")
            produce(broker, "t", numbered(0, 60))
            assert REMOTE_LOG_METADATA_TOPIC not in admin.list_topics(timeout=30).topics
            with urllib.request.urlopen(urllib.request.Request(f"{s3.endpoint}/{name}", method="PUT"), timeout=30):
                pass
            wait_until(lambda: ready(broker) == "ready\n", what="the storage to be back")
            wait_tiered(broker, "t")
            assert REMOTE_LOG_METADATA_TOPIC in admin.list_topics(timeout=30).topics
