"""Our log directory in Kafka's hands: its dump tool checks every file, and a real Kafka serves the records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import kafka

from interop.broker import CACHE, Target, strandline
from interop.dump_tool import Complaint, dump
from interop.records import Records, create_topics, read_all, write_all_codecs
from interop.results import Outcome

NAME = "log-format"
LOG_FILE = CACHE / f"{NAME}.log"

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

NAMES = tuple(TOPICS)


def why_unavailable() -> str | None:
    return kafka.why_unavailable()


def run(_: Target | None = None, only: str | None = None) -> dict[str, Outcome]:
    """Write with a broker of our own, stop it, and give its directory to Kafka."""
    libraries = kafka.install()
    settings = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "0"}
    with strandline(f"{NAME}-written", settings) as target:
        create_topics(target.bootstrap, TOPICS, PARTITIONS)
        write_all_codecs(target.bootstrap, NAMES, PARTITIONS)
        records = read_all(target.bootstrap, NAMES, PARTITIONS, commit=True)  # so that there is a group to dump
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


def _dump(libraries: Path, log_dir: Path, pattern: str, *options: str) -> bool:
    """Whether the dump tool reads every such file without a complaint."""
    found = log_dir.glob(pattern if "/" in pattern else f"*/{pattern}")
    try:
        dump(libraries, (path for path in found if "-delete/" not in str(path)), *options, log_file=LOG_FILE)
    except Complaint as complaint:
        _log(f"FAILED {pattern}: {complaint}")
        return False
    return True


def _served_by_kafka(libraries: Path, log_dir: Path, records: Records, *, is_clean: bool) -> bool:
    """Put our partitions under a Kafka that has topics of the same names, and read them there.

    Topic ids are Kafka's own: they come from its metadata, and `partition.metadata` must agree with it. Without the
    mark of a clean stop, Kafka checks every batch and rebuilds every index.
    """
    data_dir = CACHE / "brokers" / f"{NAME}-in-kafka"
    shutil.rmtree(data_dir, ignore_errors=True)
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        create_topics(broker.bootstrap, TOPICS, PARTITIONS)
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
        return _same(records, read_all(broker.bootstrap, NAMES, PARTITIONS))


def _taken_in_turns(libraries: Path) -> bool:
    """Kafka writes, we take its directory over and write, Kafka gets it back, reads and writes."""
    data_dir = CACHE / "brokers" / f"{NAME}-in-turns"
    shutil.rmtree(data_dir, ignore_errors=True)
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        create_topics(broker.bootstrap, TOPICS, PARTITIONS)
        write_all_codecs(broker.bootstrap, NAMES, PARTITIONS)
        kafkas = read_all(broker.bootstrap, NAMES, PARTITIONS)
    with strandline(f"{NAME}-in-turns", {"log.dirs": str(data_dir), "node.id": "1"}) as target:
        is_taken_over = _same(kafkas, read_all(target.bootstrap, NAMES, PARTITIONS))
        write_all_codecs(target.bootstrap, NAMES, PARTITIONS)
        both = read_all(target.bootstrap, NAMES, PARTITIONS)
    with kafka.KafkaBroker(libraries, data_dir) as broker:
        is_given_back = _same(both, read_all(broker.bootstrap, NAMES, PARTITIONS))
        # Kafka's metadata does not know which producer ids we gave out meanwhile, so it gives them out again.
        write_all_codecs(broker.bootstrap, NAMES, PARTITIONS, is_idempotent=False)
        is_continued = len(read_all(broker.bootstrap, NAMES, PARTITIONS)) > len(both)
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
    with LOG_FILE.open("a") as log:
        log.write(text + "\n")
