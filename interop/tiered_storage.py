"""Tiered storage in Kafka's hands: its dump tool reads remote files, its tools ask, and brokers take turns."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial

from bench import kafka
from confluent_kafka import KafkaException

from interop import tiered_tools, tiered_topics
from interop.broker import Target
from interop.dump_tool import Complaint
from interop.kafka_tools import ToolFailed, Tools
from interop.records import create_topics, read_all, write_all_codecs
from interop.results import Outcome
from interop.tiered_files import RemoteFiles
from interop.tiered_in_kafka import InKafka
from interop.tiered_tools import Tiers
from interop.tiered_topics import LOG_FILE, PARTITIONS, TOPICS, log, wait_until_copied
from interop.tiered_turns import Turns
from interop.tiers import fresh, tiered_broker

NAME = tiered_topics.NAME
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
        wait_until_copied(broker, remote, tuple(TOPICS))
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
    in_kafka = InKafka(broker.log_dir, remote, records)
    check("kafka-serves-our-tiers", in_kafka.serve)
    check("kafka-follower-starts-from-our-tiers", in_kafka.follow)
    turns = Turns(kind)
    check("kafkas-tiers-taken-over", turns.take_over)
    check("dump-remote-transactions", turns.dump)
    check("kafka-gets-its-tiers-back", turns.give_back)
    return outcomes


def _outcome(name: str, does: Callable[[], None]) -> Outcome:
    try:
        does()
    except FAILURES as failure:
        log(f"FAILED {name}: {type(failure).__name__}: {failure}")
        return Outcome.FAILED
    return Outcome.PASSED
