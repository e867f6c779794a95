"""AlterReplicaLogDirs: replicas stay in the directories they are in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from strandline.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker import BrokerProcess, running_broker
from tests.server.handlers.conftest import create_topic


@pytest.fixture(scope="module")
def two_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    base = tmp_path_factory.mktemp("two")
    with running_broker(base / "data", {"log.dirs": f"{base / 'a'},{base / 'b'}"}) as running:
        yield running


def put(client: Client, path: str, topic: str, partition: int = 0) -> ErrorCode:
    wish = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[partition])])
    answer = client.request(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest(dirs=[wish]))
    ((result,),) = (one.partitions for one in answer.results)
    assert (answer.results[0].topic_name, result.partition_index) == (topic, partition)
    return ErrorCode(result.error_code)


def place_of(client: Client, topic: str) -> str:
    answer = client.request(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
    (path,) = [place.log_dir for place in answer.results if topic in [one.name for one in place.topics]]
    assert isinstance(path, str)
    return path


def test_a_replica_stays_where_it_is(two_directories: BrokerProcess) -> None:
    with Client.connect("127.0.0.1", two_directories.port) as client:
        topic = create_topic(client, "moving")
        here = place_of(client, topic)
        there = str(Path(here).with_name("b" if Path(here).name == "a" else "a"))
        assert put(client, here, topic) is ErrorCode.NONE
        assert put(client, there, topic) is ErrorCode.UNSUPPORTED_VERSION
        assert place_of(client, topic) == here
        assert "logs cannot move" in two_directories.log_text
        assert put(client, "/nowhere", topic) is ErrorCode.LOG_DIR_NOT_FOUND
        assert put(client, here, topic, 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert put(client, here, "missing") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_of_two_places_for_a_replica_the_last_one_counts(two_directories: BrokerProcess) -> None:
    with Client.connect("127.0.0.1", two_directories.port) as client:
        topic = create_topic(client, "placed-twice")
        wishes = [
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0, 0])])
            for path in ("/nowhere", place_of(client, topic))
        ]
        answer = client.request(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest(dirs=wishes))
        assert [[row.error_code for row in one.partitions] for one in answer.results] == [[ErrorCode.NONE]]


def test_a_diskless_partition_is_in_no_directory(two_directories: BrokerProcess) -> None:
    with Client.connect("127.0.0.1", two_directories.port) as client:
        topic = create_topic(client, "objects", configs={"diskless.enable": "true"})
        answer = client.request(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
        directory = next(place.log_dir for place in answer.results if place.log_dir.endswith("/a"))
        assert put(client, directory, topic) is ErrorCode.REPLICA_NOT_AVAILABLE
