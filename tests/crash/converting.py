"""What tests look at when a conversion is interrupted: the bytes of logs, what is left in database and stores."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from strandline.admin.commands.main import run
from strandline.pipeline.client import TieringClient
from strandline.records import iter_headers
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker import BrokerProcess
from tests.clients import tiering
from tests.crash.tiered_store import differences, list_directory
from tests.pipeline.plain_driver import run_driver
from tests.waiting import wait_until

SECONDS = 40.0
SIGKILLED = -9
# Objects go as soon as nothing refers to them, without a search for orphans; claims of the dead do not last.
SETTINGS = {
    **tiering.QUICK,
    "inkless.consume.cache.max.bytes": "0",
    "inkless.file.cleaner.interval.ms": "100",
    "inkless.file.cleaner.retention.period.ms": "0",
    "strandline.objects.orphan.scan.interval.ms": "0",
    "inkless.produce.commit.interval.ms": "10",
    "inkless.tiering.splitter.claim.duration.ms": "1000",
    "inkless.tiering.min.segment.bytes": "1",
}
DISKLESS = {"diskless.enable": "true", "local.retention.ms": "0", "retention.ms": "-1"}

Partition = tuple[str, int]
Logs = dict[Partition, bytes]


# What clients see


def read_log(bootstrap: str, topic: str, partition: int = 0) -> bytes:
    """All bytes of a partition from its beginning to its end, as clients get them."""
    host, _, port = bootstrap.partition(",")[0].rpartition(":")
    with Client.connect(host, int(port)) as client:
        offset, parts = _offset(client, topic, partition, -2), []
        end = _offset(client, topic, partition, -1)
        while offset < end:
            data = wait_until(
                lambda at=offset: _fetch(client, topic, partition, at),  # type: ignore[misc]
                within=SECONDS,
                what=f"the records of {topic}-{partition} from offset {offset} on",
            )
            for position, header in iter_headers(data):
                if header.next_offset > offset:  # a batch may begin before the first offset of the log
                    parts.append(data[position : position + header.size])
                    assert header.base_offset <= offset, f"offset {offset} is missing"
                    offset = header.next_offset
        return b"".join(parts)


def _offset(client: Client, topic: str, partition: int, timestamp: int) -> int:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])

    def ask() -> tuple[int] | None:
        found = client.request(ApiKey.LIST_OFFSETS, request).topics[0].partitions[0]
        return (found.offset,) if found.error_code == 0 else None

    return wait_until(ask, within=SECONDS, what=f"the offsets of {topic}-{partition}")[0]


def _fetch(client: Client, topic: str, partition: int, offset: int) -> bytes:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[asked])]
    request = FetchRequest(max_wait_ms=200, min_bytes=1, max_bytes=1 << 20, topics=topics)
    answer = client.request(ApiKey.FETCH, request, version=12)
    found = answer.responses[0].partitions[0]
    error = ErrorCode(found.error_code)
    assert error in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER), error
    return bytes(found.records or b"")


def read_logs(bootstrap: str, partitions: Iterable[Partition]) -> Logs:
    return {(topic, number): read_log(bootstrap, topic, number) for topic, number in partitions}


# What is left


def is_converted(bootstrap: str, *topics: str) -> bool:
    """Whether nothing of the topics is left to convert, and nothing is under way."""
    with TieringClient(bootstrap) as client:
        return all(
            (one.diskless_start_offset, one.lag_bytes, one.pending_split_files_count) == (one.high_watermark, 0, 0)
            for status in client.statuses(topics)
            for one in status.partitions
        )


def rows_left(broker: BrokerProcess, *tables: str) -> dict[str, int]:
    """The rows of the control plane of a broker with an embedded database, those that are not empty."""
    names = tables or ("inkless_batch", "inkless_split_batch", "inkless_tiering_segment", "inkless_wal_file_claim")
    with closing(sqlite3.connect(f"file:{broker.data_dir}/metadata.db?mode=ro", uri=True)) as database:
        counts = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    return {name: count for name, count in counts.items() if count}


def objects(broker: BrokerProcess) -> list[str]:
    """WAL objects and split files."""
    return [key for key in list_directory(broker.data_dir / "objects") if key.startswith(("wal/", "split/"))]


def wait_tidy(broker: BrokerProcess) -> None:
    """Until the stores hold what is referred to, once, and nothing else, and no segment is stuck on its way."""

    def wrong() -> list[str]:
        return [*differences(broker, lambda: list_directory(broker.data_dir / "remote")), *unreferenced(broker)]

    last: list[str] = []

    def is_tidy() -> bool:
        last[:] = wrong()
        return not last

    try:
        wait_until(is_tidy, within=SECONDS, step=0.2, what="tidy stores")
    except AssertionError as error:
        raise AssertionError(f"{error}: {last[:10]}") from None


def unreferenced(broker: BrokerProcess) -> list[str]:
    """Objects that no row knows of. What rows know of and is not there is found by `findings`."""
    with closing(sqlite3.connect(f"file:{broker.data_dir}/metadata.db?mode=ro", uri=True)) as database:
        known = {row[0] for row in database.execute("SELECT object_key FROM inkless_file")}
    return [f"nothing refers to {key}" for key in objects(broker) if key not in known]


def findings(broker: BrokerProcess) -> list[Mapping[str, object]]:
    """What `strandline fsck --deep` finds beside the running broker, in the object store and in remote storage."""
    arguments = ["fsck", "--deep", "--json", "--grace", "0", "--data-dir", str(broker.data_dir)]
    for name, value in broker.settings.items():
        arguments += ["--set", f"{name}={value}"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        run([*arguments, "--bootstrap", broker.bootstrap])
    report = json.loads(output.getvalue())
    return [*report["findings"], *report["remote"]["findings"]]


# Drivers


class DriverProcess:
    """A driver without Spark in a process of its own, forked from one that has loaded the code."""

    def __init__(self, bootstrap: str, *topics: str, crash_at: str = "") -> None:
        self._log = Path(tempfile.mkstemp(prefix="driver-")[1])
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.pipeline.plain_driver"])
        self._process = context.Process(target=run_driver, args=(str(self._log), crash_at, bootstrap, *topics))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def said(self) -> str:
        return self._log.read_text()

    def wait(self) -> int:
        """Its exit status."""
        self._process.join(SECONDS)
        assert self._process.exitcode is not None, f"the driver does not end: {self.said}"
        return self._process.exitcode

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._log.unlink()


@contextmanager
def running_driver(bootstrap: str, *topics: str, crash_at: str = "") -> Iterator[DriverProcess]:
    driver = DriverProcess(bootstrap, *topics, crash_at=crash_at)
    try:
        yield driver
    finally:
        driver.close()
