"""Disks that are full: what clients are told, what the log says, and what goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.broker import running_broker
from tests.hybrid.test_starting import ready
from tests.waiting import wait_until
from tests.wirelevel.raw import CREATE_TOPICS_VERSION, RawConnection, batch, connected, create_topic, produce

LARGE = b"x" * 60_000
NO_PATIENCE = {
    "inkless.produce.max.upload.attempts": "1",
    "inkless.storage.s3.api.call.timeout": "1000",
    "inkless.storage.s3.api.call.attempt.timeout": "1000",
}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    path = tmp_path / "small"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def write_until_refused(connection: RawConnection, topic: str, partition: int = 0) -> str:
    """Write until that fails; what the broker says then."""
    for _ in range(100):
        code, _, message = produce(connection, topic, batch(LARGE), partition=partition)
        if code:
            assert code == ErrorCode.KAFKA_STORAGE_ERROR
            assert message is not None
            return message
    raise AssertionError("the disk does not fill")


def test_a_full_log_directory_goes_offline_with_a_sentence_and_the_others_go_on(
    tmp_path: Path, small_disk: Path
) -> None:
    logs = {"log.dirs": f"{tmp_path}/roomy,{small_disk}/logs", "log.index.size.max.bytes": "4096"}
    with running_broker(tmp_path / "data", logs) as broker, connected(broker.bootstrap) as connection:
        create_topic(connection, "t", partitions=2)
        (full,) = (int(path.name[-1]) for path in (small_disk / "logs").glob("t-*"))
        message = write_until_refused(connection, "t", full)
        assert f"{small_disk}/logs is offline: the disk is full. Free some space there" in message
        assert message.removeprefix("The ").removesuffix(".") in broker.log_text
        assert produce(connection, "t", batch(LARGE), partition=1 - full)[0] == 0


def test_a_full_directory_of_objects_is_named_and_used_again_when_there_is_space(
    tmp_path: Path, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    settings = {"strandline.objects.url": f"file://{small_disk}/objects", **NO_PATIENCE}
    with running_broker(tmp_path / "data", settings) as broker, connected(broker.bootstrap) as connection:
        create_topic(connection, "classic")
        create_topic(connection, "t", diskless_enable="true")
        message = write_until_refused(connection, "t")
        assert f"file://{small_disk}/objects: the disk is full" in message
        wait_until(lambda: "the disk is full" in ready(broker), what="the store to be named")
        assert produce(connection, "classic", batch(LARGE))[0] == 0
        ballast.unlink()
        wait_until(lambda: produce(connection, "t", batch(LARGE))[0] == 0, what="a write")
        wait_until(lambda: ready(broker) == "ready\n", what="the store to be back")


def test_a_full_disk_below_the_database_stops_changes_of_metadata_only(tmp_path: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    url = {"strandline.metadata.url": f"sqlite:///{small_disk}/metadata.db"}

    def create(connection: RawConnection, name: str) -> tuple[int, str | None]:
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=200, replication_factor=1)], timeout_ms=20_000
        )
        [answer] = connection.call(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request).topics
        return answer.error_code, answer.error_message

    with running_broker(tmp_path / "data", url) as broker, connected(broker.bootstrap) as connection:
        create_topic(connection, "classic")
        fill(ballast)
        refusals = [answer for number in range(6) if (answer := create(connection, f"t-{number}"))[0]]
        assert refusals
        assert all(f"{small_disk}/metadata.db is full" in (message or "") for _, message in refusals), refusals
        assert produce(connection, "classic", batch(LARGE))[0] == 0
        ballast.unlink()
        wait_until(lambda: create(connection, "later")[0] == 0, what="a change of metadata")
        assert broker.is_running


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(65_536)):
                pass
        except OSError:
            return
