"""Our log directory in Kafka's hands: its dump tool checks every file, and a real Kafka serves the records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from interop.broker import CACHE, Target, strandline
from interop.results import Outcome

NAME = "log-format"
SECONDS = 60.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

# Small segments and dense indexes, so that there is something to check.
TOPICS = {
    "dumped": {"internal.segment.bytes": "100000", "index.interval.bytes": "500"},
    "dumped-compacted": {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "50000",
        "index.interval.bytes": "500",
        "min.cleanable.dirty.ratio": "0.01",
    },
    "dumped-append-time": {"message.timestamp.type": "LogAppendTime"},
}
PARTITIONS = 2

# What the dump tool prints when it does not like something. "Non-consecutive offsets" is not among them: it prints
# that for every segment that does not begin at 0, and for every compacted one.
COMPLAINTS = ("failed", "Mismatches", "Exception", "corrupt", "not equal", "isvalid: false", "Found timestamp mismatch")

Records = dict[tuple[str, int, int], tuple[bytes | None, bytes | None, int]]


def why_unavailable() -> str | None:
    return kafka.why_unavailable()


def run(_: Target | None = None, only: str | None = None) -> dict[str, Outcome]:
    """Write with a broker of our own, stop it, and give its directory to Kafka."""
    libraries = kafka.install()
    settings = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "0"}
    with strandline(NAME, settings) as target:
        _create_topics(target.bootstrap)
        _write(target.bootstrap)
        records = _read(target.bootstrap, commit=True)  # so that there is a group to dump
        log_dir = target.log_dir
    checks: dict[str, Callable[[], bool]] = {
        "dump-records": lambda: _dump(libraries, log_dir, "*.log", "--deep-iteration", "--print-data-log"),
        "dump-index-sanity": lambda: _dump(libraries, log_dir, "*index", "--index-sanity-check"),
        "dump-index-verify": lambda: _dump(libraries, log_dir, "*index", "--verify-index-only"),
        "dump-indexes": lambda: _dump(libraries, log_dir, "*index", "--deep-iteration"),
        "dump-snapshots": lambda: _dump(libraries, log_dir, "*.snapshot"),
        "dump-groups": lambda: _dump(libraries, log_dir, "__consumer_offsets-*/*.log", "--offsets-decoder"),
        "kafka-serves-our-records": lambda: _served_by_kafka(libraries, log_dir, records, is_clean=True),
        "kafka-recovers-our-log": lambda: _served_by_kafka(libraries, log_dir, records, is_clean=False),
        "kafka-gets-its-directory-back": lambda: _taken_in_turns(libraries),
    }
    return {
        name: Outcome.PASSED if check() else Outcome.FAILED
        for name, check in checks.items()
        if only is None or name == only
    }


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    topics = [NewTopic(name, num_partitions=PARTITIONS, config=config) for name, config in TOPICS.items()]
    for created in admin.create_topics(topics).values():
        created.result(SECONDS)


def _write(bootstrap: str, *, is_idempotent: bool = True) -> None:
    """All codecs, keys that repeat; a new producer for each codec, so several producer ids."""
    for number, codec in enumerate(CODECS):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 2,
                "compression.type": codec,
                "enable.idempotence": is_idempotent,
                "batch.num.messages": 40,
            }
        )
        for topic in TOPICS:
            for record in range(2000):
                value = f"{codec} {record} ".encode() * 10
                headers: Any = [("codec", codec.encode())]
                producer.produce(topic, value, b"key-%d" % (record % 300), record % PARTITIONS, headers=headers)
            producer.poll(0)
        if producer.flush(SECONDS):
            raise RuntimeError(f"records in codec {codec} (round {number}) were not acknowledged")


def _read(bootstrap: str, *, commit: bool = False) -> Records:
    """Every record by its place: key, value and timestamp."""
    settings = {
        "bootstrap.servers": bootstrap,
        "log_level": 2,
        "group.id": "dump-readers",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    records: Records = {}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for topic in TOPICS for one in range(PARTITIONS)])
        ends = 0
        while ends < len(TOPICS) * PARTITIONS:
            message = consumer.poll(SECONDS)
            if message is None:
                raise RuntimeError("the broker does not give the records back")
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                ends += 1
            elif error is not None:
                raise KafkaException(error)
            else:
                place = (message.topic() or "", message.partition() or 0, message.offset() or 0)
                records[place] = (message.key(), message.value(), message.timestamp()[1])
        if commit:
            consumer.commit(asynchronous=False)
    return records


def _dump(libraries: Path, log_dir: Path, pattern: str, *options: str) -> bool:
    """Whether the dump tool reads every such file without a complaint."""
    found = log_dir.glob(pattern if "/" in pattern else f"*/{pattern}")
    files = sorted(str(path) for path in found if "-delete/" not in str(path))
    if not files:
        _log(f"no files {pattern} in {log_dir}")
        return False
    tool = kafka.run_tool(libraries, kafka.DUMP_LOG, "--files", ",".join(files), *options)
    said = tool.stdout + tool.stderr
    _log(f"$ DumpLogSegments {' '.join(options)} ({len(files)} files)\n{said}")
    complaints = [line for line in said.splitlines() if any(word in line for word in COMPLAINTS)]
    return tool.returncode == 0 and not complaints


def _served_by_kafka(libraries: Path, log_dir: Path, records: Records, *, is_clean: bool) -> bool:
    """Put our partitions under a Kafka that has topics of the same names, and read them there.

    Topic ids are Kafka's own: they come from its metadata, and `partition.metadata` must agree with it. Without the
    mark of a clean stop, Kafka checks every batch and rebuilds every index.
    """
    data_dir = CACHE / "brokers" / f"{NAME}-in-kafka"
    shutil.rmtree(data_dir, ignore_errors=True)
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        _create_topics(broker.bootstrap)
    for partition in _partition_directories(log_dir):
        own = data_dir / partition.name
        topic_id = (own / "partition.metadata").read_text()
        shutil.rmtree(own)
        shutil.copytree(partition, own)
        (own / "partition.metadata").write_text(topic_id)
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        shutil.copy(log_dir / checkpoint, data_dir / checkpoint)
    if not is_clean:
        (data_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (data_dir / "recovery-point-offset-checkpoint").unlink()
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        return _same(records, _read(broker.bootstrap))


def _taken_in_turns(libraries: Path) -> bool:
    """Kafka writes, we take its directory over and write, Kafka gets it back, reads and writes."""
    data_dir = CACHE / "brokers" / f"{NAME}-in-turns"
    shutil.rmtree(data_dir, ignore_errors=True)
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        _create_topics(broker.bootstrap)
        _write(broker.bootstrap)
        kafkas = _read(broker.bootstrap)
    with strandline(f"{NAME}-in-turns", {"log.dirs": str(data_dir), "node.id": "1"}) as target:
        is_taken_over = _same(kafkas, _read(target.bootstrap))
        _write(target.bootstrap)
        both = _read(target.bootstrap)
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        is_given_back = _same(both, _read(broker.bootstrap))
        # Kafka's metadata does not know which producer ids we gave out meanwhile, so it gives them out again.
        _write(broker.bootstrap, is_idempotent=False)
        is_continued = len(_read(broker.bootstrap)) > len(both)
    return is_taken_over and is_given_back and is_continued


def _partition_directories(log_dir: Path) -> Iterable[Path]:
    return [log_dir / f"{topic}-{partition}" for topic in TOPICS for partition in range(PARTITIONS)]


def _same(before: Records, now: Records) -> bool:
    """Compaction may go on: what is still there must be as it was, and uncompacted topics must be complete."""
    foreign = [place for place, record in now.items() if before.get(place) != record]
    missing = [place for place in before if place not in now and "compacted" not in place[0]]
    _log(f"{len(now)} of {len(before)} records are served; {len(foreign)} differ, {len(missing)} are missing")
    return not foreign and not missing and bool(now)


def _log(text: str) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{NAME}.log").open("a") as log:
        log.write(text + "\n")
