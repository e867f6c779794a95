"""Tiered storage in Kafka's hands: its dump tool reads remote files, its tools ask, and brokers take turns."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import kafka
from confluent_kafka import KafkaException, Producer

from interop import tiered_tools
from interop.broker import CACHE, Target
from interop.dump_tool import Complaint, dump
from interop.kafka_tools import ToolFailed, Tools
from interop.kafka_topic_ids import change_topic_ids, topic_id_of
from interop.records import SECONDS, Records, create_topics, read_all, write_all_codecs
from interop.results import Outcome
from interop.tiered_tools import Tiers
from interop.tiers import (
    METADATA_PARTITIONS,
    METADATA_TOPIC,
    as_local_files,
    fresh,
    is_copied,
    local_bases,
    remote_segments,
    tiered_broker,
    wait_until,
)

NAME = "tiered-storage"
LOG_FILE = CACHE / f"{NAME}.log"
PARTITIONS = 2
_SMALL = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "500",
    "retention.ms": "-1",
}
TOPICS = {"tiered": {**_SMALL, "local.retention.bytes": "30000"}, "tiered-kept": _SMALL}
TRANSACTIONS = "tiered-transactions"
IN_TURNS = {**TOPICS, TRANSACTIONS: TOPICS["tiered"]}

COPY_NEVER = {"remote.log.manager.task.interval.ms": "3600000"}
FAILURES = (ToolFailed, Complaint, KafkaException, RuntimeError, TimeoutError, subprocess.TimeoutExpired)


def why_unavailable() -> str | None:
    return kafka.why_unavailable(with_tiered_storage=True)


def run(target: Target | None = None, only: str | None = None) -> dict[str, Outcome]:
    """Fill a broker whose topics are tiered, ask it with Kafka's tools, then give its files to Kafka."""
    kind = target.name if target else "strandline"
    LOG_FILE.parent.mkdir(parents=True, exist_ok=True)
    LOG_FILE.write_text("")
    remote = fresh(f"{NAME}-remote")
    outcomes: dict[str, Outcome] = {}

    def check(name: str, does: Callable[[], None]) -> None:
        if only is None or re.fullmatch(only, name):
            outcomes[name] = _outcome(name, does)

    with tiered_broker(kind, f"{NAME}-written", remote) as broker:
        tools = Tools(kafka.install(), broker.bootstrap, LOG_FILE)
        create_topics(broker.bootstrap, TOPICS, PARTITIONS)
        write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS)
        tiered_tools.prepare(broker, remote)
        _wait_until_copied(broker, remote, tuple(TOPICS))
        records = read_all(broker.bootstrap, tuple(TOPICS), PARTITIONS)
        for tool_check in tiered_tools.CHECKS:
            check(tool_check.__name__.replace("_", "-"), partial(tool_check, Tiers(tools, broker, remote)))
    files = RemoteFiles(remote, broker.log_dir)
    check("dump-remote-records", lambda: files.must_be_accepted(("log",), "--deep-iteration", "--print-data-log"))
    check("dump-remote-index-sanity", lambda: files.must_be_accepted(("index", "timeindex"), "--index-sanity-check"))
    check("dump-remote-index-verify", lambda: files.must_be_accepted(("index", "timeindex"), "--verify-index-only"))
    check("dump-remote-indexes", lambda: files.must_be_accepted(("index", "timeindex"), "--deep-iteration"))
    check("dump-remote-snapshots", lambda: files.must_be_accepted(("snapshot",)))
    check("dump-remote-log-metadata", files.metadata_must_fit)
    check("kafka-serves-our-tiers", lambda: _served_by_kafka(broker.log_dir, remote, records))
    turns = Turns(kind)
    check("kafkas-tiers-taken-over", turns.take_over)
    check("dump-remote-transactions", turns.dump)
    check("kafka-gets-its-tiers-back", turns.give_back)
    return outcomes


def _outcome(name: str, does: Callable[[], None]) -> Outcome:
    try:
        does()
    except FAILURES as failure:
        _log(f"FAILED {name}: {type(failure).__name__}: {failure}")
        return Outcome.FAILED
    return Outcome.PASSED


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """What a stopped broker has left in its remote directory, and in its log directory."""

    remote: Path
    log_dir: Path

    def must_be_accepted(self, kinds: Sequence[str], *options: str) -> None:
        """Kafka's dump tool accepts every remote file of these kinds. Every segment has them; but few have aborts."""
        segments = remote_segments(self.remote)
        for segment in segments:
            missing = {"log", "index", "timeindex", "snapshot", "leader_epoch_checkpoint"} - segment.files.keys()
            if missing:
                raise Complaint(f"segment {segment.base_offset} of {segment.partition} has no {', '.join(missing)}")
        directory = as_local_files(segments, fresh(f"{NAME}-dumped"))
        files = [path for kind in kinds for path in directory.glob(f"*/*.{kind}")]
        dump(kafka.install(), files, *options, log_file=LOG_FILE)

    def metadata_must_fit(self) -> None:
        """Kafka's decoder says of every segment in the remote directory, and of no other, that its copy is finished."""
        partitions = sorted(self.log_dir.glob(f"{METADATA_TOPIC}-*/*.log"))
        said = dump(kafka.install(), partitions, "--remote-log-metadata-decoder", log_file=LOG_FILE)
        states = {}
        for line in said.splitlines():
            segment = re.search(r"RemoteLogSegmentId\{.*?id=([\w-]{22})\}.* state=(\w+)", line)
            if segment:
                states[segment[1]] = segment[2]
        finished = {segment for segment, state in states.items() if state == "COPY_SEGMENT_FINISHED"}
        in_store = {segment.segment_id for segment in remote_segments(self.remote)}
        _log(f"{len(states)} segments are known, {len(finished)} finished, {len(in_store)} in the store")
        if finished != in_store or set(states.values()) - {"COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_FINISHED"}:
            raise Complaint(f"metadata and store differ in {finished ^ in_store}: {states}")


def _served_by_kafka(log_dir: Path, remote: Path, records: Records) -> None:
    """Put partitions, their remote segments and the metadata of these under a new Kafka, and read them there."""
    data_dir, store = fresh(f"{NAME}-in-kafka"), fresh(f"{NAME}-in-kafka-remote")
    with tiered_broker("kafka", NAME, store, log_dir=data_dir) as broker:
        create_topics(broker.bootstrap, TOPICS, PARTITIONS)
        wait_until(lambda: len(list(data_dir.glob(f"{METADATA_TOPIC}-*"))) == METADATA_PARTITIONS, "Kafka's own topic")
    names = [f"{topic}-{number}" for topic in TOPICS for number in range(PARTITIONS)]
    names += [f"{METADATA_TOPIC}-{number}" for number in range(METADATA_PARTITIONS)]
    change_topic_ids(data_dir, {topic_id_of(data_dir / name): topic_id_of(log_dir / name) for name in names})
    for name in names:
        shutil.rmtree(data_dir / name)
        shutil.copytree(log_dir / name, data_dir / name)
    for checkpoint in ("recovery-point", "replication", "log-start"):
        shutil.copy(log_dir / f"{checkpoint}-offset-checkpoint", data_dir)
    shutil.rmtree(store)
    shutil.copytree(remote, store)
    with tiered_broker("kafka", NAME, store, log_dir=data_dir) as broker:
        _wait_until_ready(broker, tuple(TOPICS))
        _must_be_same(records, read_all(broker.bootstrap, tuple(TOPICS), PARTITIONS))


class Turns:
    """One log directory and one remote directory: Kafka, then we, then Kafka again. Each finds what the other has."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._remote = fresh(f"{NAME}-in-turns-remote")
        self._log_dir = fresh(f"{NAME}-in-turns")
        self._records: dict[str, Records] = {}

    def take_over(self) -> None:
        """Kafka writes and copies two topics, and writes transactions that it does not copy: that is left to us."""
        with self._kafka(copies=True) as broker:
            create_topics(broker.bootstrap, IN_TURNS, PARTITIONS)
            write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS)
            _wait_until_copied(broker, self._remote, tuple(TOPICS))
        with self._kafka(copies=False) as broker:
            _write_transactions(broker.bootstrap)
            self._records = _read_both(broker.bootstrap)
        with tiered_broker(self._kind, f"{NAME}-in-turns", self._remote, log_dir=self._log_dir) as broker:
            _wait_until_ready(broker, tuple(TOPICS))
            self._must_be_the_same(broker)
            write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS)
            _wait_until_copied(broker, self._remote, tuple(IN_TURNS))
            self._must_be_the_same(broker, is_longer=True)
            self._records = _read_both(broker.bootstrap)

    def dump(self) -> None:
        """Kafka's dump tool accepts what we have copied from Kafka's log, transaction indexes included."""
        files = RemoteFiles(self._remote, self._log_dir)
        for kind in ("log", "index", "timeindex", "txnindex", "snapshot"):
            files.must_be_accepted((kind,), "--deep-iteration")
        files.metadata_must_fit()

    def give_back(self) -> None:
        """Kafka reads all of it, goes on writing and copying."""
        with self._kafka(copies=True) as broker:
            _wait_until_ready(broker, tuple(IN_TURNS))
            self._must_be_the_same(broker)
            # Kafka's metadata does not know which producer ids we gave out meanwhile, so it gives them out again.
            write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS, is_idempotent=False)
            _wait_until_copied(broker, self._remote, tuple(IN_TURNS))
            self._must_be_the_same(broker, is_longer=True)

    def _kafka(self, *, copies: bool) -> AbstractContextManager[Target]:
        settings = {} if copies else COPY_NEVER
        return tiered_broker("kafka", NAME, self._remote, log_dir=self._log_dir, settings=settings)

    def _must_be_the_same(self, broker: Target, *, is_longer: bool = False) -> None:
        now = _read_both(broker.bootstrap)
        for isolation, before in self._records.items():
            _must_be_same(before, now[isolation], is_longer=is_longer)


def _wait_until_copied(broker: Target, remote: Path, topics: Sequence[str]) -> None:
    """Until every finished segment is remote and, where local retention says so, only there."""
    for partition in (f"{topic}-{number}" for topic in topics for number in range(PARTITIONS)):
        goes = "local.retention.bytes" in IN_TURNS[partition.rpartition("-")[0]]
        copied = partial(is_copied, broker.log_dir, remote, partition, is_local_part_gone=goes)
        wait_until(copied, f"copying of {partition}")
    for topic in topics:
        _wait_until_told(broker, topic)


def _wait_until_ready(broker: Target, topics: Sequence[str]) -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR to who reads before it knows its remote segments. We let them ask again."""
    if broker.name == "kafka":
        for topic in topics:
            _wait_until_told(broker, topic)


def _wait_until_told(broker: Target, topic: str) -> None:
    """Until the broker says that the last record of its last finished segment is remote."""
    tools = Tools(kafka.install(), broker.bootstrap, LOG_FILE)
    ends = [local_bases(broker.log_dir, f"{topic}-{number}")[-1] - 1 for number in range(PARTITIONS)]
    expected = [f"{topic}:{number}:{offset}" for number, offset in enumerate(ends)]
    latest_tiered = partial(tools.ask, "GetOffsetShell", "--topic", topic, "--time", "latest-tiered")
    wait_until(lambda: latest_tiered().split() == expected, f"latest tiered offsets {expected}")


def _write_transactions(bootstrap: str) -> None:
    """Every third one is aborted; they span segments."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 2, "batch.num.messages": 20}
    producer = Producer({**settings, "transactional.id": "in-turns"})
    producer.init_transactions(SECONDS)
    for transaction in range(30):
        producer.begin_transaction()
        for record in range(60):
            value = f"transaction {transaction}, record {record} ".encode() * 4
            producer.produce(TRANSACTIONS, value, b"key", record % PARTITIONS)
        if transaction % 3 == 2:
            producer.flush(SECONDS)  # or nothing of it is in the log
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)


def _read_both(bootstrap: str) -> dict[str, Records]:
    """What a consumer sees, by its isolation level."""
    return {
        level: read_all(bootstrap, tuple(IN_TURNS), PARTITIONS, settings={"isolation.level": level})
        for level in ("read_uncommitted", "read_committed")
    }


def _must_be_same(before: Records, now: Records, *, is_longer: bool = False) -> None:
    """Every record is where it was. Raises Complaint with some that are not."""
    differ = [place for place, record in before.items() if now.get(place) != record]
    more = now.keys() - before.keys()
    _log(f"{len(now)} records are served, {len(before)} expected; {len(differ)} are missing or differ")
    if differ or (more and not is_longer) or not before:
        raise Complaint(f"missing or different: {differ[:10]}; not expected: {sorted(more)[:10]}")


def _log(text: str) -> None:
    with LOG_FILE.open("a") as log:
        log.write(text + "\n")
