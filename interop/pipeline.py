"""What the tiering pipeline makes of diskless topics, in Kafka's hands: its dump tool, a real Kafka, other clients."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench import kafka
from confluent_kafka import KafkaException

from interop import kcat
from interop.broker import CACHE, Target
from interop.dump_tool import Complaint
from interop.kafka_tools import ToolFailed, Tools
from interop.pipeline_in_kafka import SegmentsInKafka
from interop.records import Records, create_topics, read_all, write_all_codecs
from interop.results import Outcome
from interop.tiered_files import RemoteFiles
from interop.tiers import fresh, tiered_broker

NAME = "pipeline"
LOG_FILE = CACHE / f"{NAME}.log"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FAILURES = (
    ToolFailed,
    Complaint,
    kcat.KcatFailed,
    KafkaException,
    RuntimeError,
    TimeoutError,
    subprocess.TimeoutExpired,
)
PARTITIONS = 2
_PLAIN = {"diskless.enable": "true", "index.interval.bytes": "500", "retention.ms": "-1"}
TOPICS = {"piped": _PLAIN, "piped-append-time": {**_PLAIN, "message.timestamp.type": "LogAppendTime"}}
NAMES = tuple(TOPICS)
# Several segments for each partition, from several runs.
SETTINGS = {"inkless.tiering.max.segment.bytes": "100000", "inkless.tiering.min.segment.bytes": "20000"}
ROUNDS = 2


def why_unavailable() -> str | None:
    return kafka.why_unavailable(with_tiered_storage=True) or kcat.why_unavailable()


def run(_: Target | None = None, only: str | None = None) -> dict[str, Outcome]:
    """Write, convert, write and convert once more, read; then give the segments to Kafka."""
    LOG_FILE.parent.mkdir(parents=True, exist_ok=True)
    LOG_FILE.write_text("")
    remote = fresh(f"{NAME}-remote")
    outcomes: dict[str, Outcome] = {}

    def check(name: str, does: Callable[[], None]) -> None:
        if only is None or re.fullmatch(only, name):
            outcomes[name] = _outcome(name, does)

    converted: Records = {}
    with tiered_broker("strandline", f"{NAME}-written", remote, settings=SETTINGS) as broker:
        create_topics(broker.bootstrap, TOPICS, PARTITIONS)
        for _round in range(ROUNDS):
            write_all_codecs(broker.bootstrap, NAMES, PARTITIONS)
            converted = read_all(broker.bootstrap, NAMES, PARTITIONS)
            _convert(broker)
        check("the-same-after-conversion", lambda: _must_serve(broker, converted))
        write_all_codecs(broker.bootstrap, NAMES[:1], PARTITIONS)  # these stay in WAL objects
        records = read_all(broker.bootstrap, NAMES, PARTITIONS)
        check("java-client-reads-all", lambda: _read_with_java(broker, records))
        check("kcat-reads-all", lambda: _read_with_kcat(broker, records))
    files = RemoteFiles(remote, broker.log_dir, LOG_FILE)
    check("dump-records", lambda: files.must_be_accepted(("log",), "--deep-iteration", "--print-data-log"))
    check("dump-index-sanity", lambda: files.must_be_accepted(("index", "timeindex"), "--index-sanity-check"))
    check("dump-index-verify", lambda: files.must_be_accepted(("index", "timeindex"), "--verify-index-only"))
    check("dump-indexes", lambda: files.must_be_accepted(("index", "timeindex"), "--deep-iteration"))
    check("dump-snapshots", lambda: files.must_be_accepted(("snapshot",)))
    check("dump-remote-log-metadata", files.metadata_must_fit)
    in_kafka = SegmentsInKafka(remote, broker.log_dir, TOPICS, PARTITIONS, converted, LOG_FILE)
    check("kafka-serves-segments-as-its-log", lambda: in_kafka.serve_as_log(is_clean=True))
    check("kafka-recovers-segments-as-its-log", lambda: in_kafka.serve_as_log(is_clean=False))
    check("kafka-serves-segments-as-its-tier", in_kafka.serve_as_tier)
    return outcomes


def _convert(broker: Target) -> None:
    """With real Spark, as an operator does. Raises RuntimeError if anything is left."""
    program = str(Path(sys.executable).with_name("strandline"))
    where = ("--bootstrap", broker.bootstrap)
    for command in (
        (program, "tiering", "trigger", *NAMES, *where),
        (program, "tiering", "run", "--once", "--no-ui", *where),
        (program, "tiering", "status", *where),
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        _log(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")


def _must_serve(broker: Target, before: Records) -> None:
    now = read_all(broker.bootstrap, NAMES, PARTITIONS)
    differ = [place for place in before.keys() | now.keys() if before.get(place) != now.get(place)]
    _log(f"{len(now)} records are served after conversion, {len(before)} expected; {len(differ)} differ")
    if differ or not before:
        raise Complaint(f"missing or different: {sorted(differ)[:10]}")


def _read_with_java(broker: Target, records: Records) -> None:
    tools = Tools(kafka.install(), broker.bootstrap, LOG_FILE.with_name(f"{NAME}-java.log"))
    shown = [word for one in ("partition", "offset") for word in ("--formatter-property", f"print.{one}=true")]
    for topic in NAMES:
        expected = sorted((place[1], place[2]) for place in records if place[0] == topic)
        where = ("--topic", topic, "--from-beginning", "--group", f"java-{topic}", "--timeout-ms", "30000")
        said = tools.ask(CONSUMER, *where, *shown, "--max-messages", str(len(expected)))
        found = sorted((int(one), int(two)) for one, two in re.findall(r"^Partition:(\d+)\tOffset:(\d+)\t", said, re.M))
        if found != expected:
            raise Complaint(f"{len(found)} of {len(expected)} records of {topic} came back")


def _read_with_kcat(broker: Target, records: Records) -> None:
    client = kcat.Kcat(broker.bootstrap)
    for topic in NAMES:
        for partition in range(PARTITIONS):
            said = client.run(
                "-C", "-t", topic, "-p", str(partition), "-o", "beginning", "-e", "-q", "-f", "%o %k %T\\n"
            )
            expected = [
                f"{offset} {(key or b'').decode()} {timestamp}"
                for (name, one, offset), (key, _, timestamp) in sorted(records.items())
                if (name, one) == (topic, partition)
            ]
            if said.splitlines() != expected:
                raise Complaint(f"kcat reads {len(said.splitlines())} of {len(expected)} records of {topic}")


def _outcome(name: str, does: Callable[[], None]) -> Outcome:
    try:
        does()
    except FAILURES as failure:
        _log(f"FAILED {name}: {type(failure).__name__}: {failure}")
        return Outcome.FAILED
    return Outcome.PASSED


def _log(text: str) -> None:
    with LOG_FILE.open("a") as file:
        file.write(f"{text}\n")
