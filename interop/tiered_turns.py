"""Kafka and we take turns at one log directory and one remote directory."""

from __future__ import annotations

from contextlib import AbstractContextManager

from confluent_kafka import Producer

from interop.broker import Target
from interop.records import SECONDS, Records, create_topics, read_all, write_all_codecs
from interop.tiered_files import RemoteFiles
from interop.tiered_topics import (
    ALL_TOPICS,
    NAME,
    PARTITIONS,
    TOPICS,
    TRANSACTIONS,
    must_be_same,
    wait_until_copied,
    wait_until_ready,
)
from interop.tiers import fresh, tiered_broker

COPY_NEVER = {"remote.log.manager.task.interval.ms": "3600000"}


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
            create_topics(broker.bootstrap, ALL_TOPICS, PARTITIONS)
            write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS)
            wait_until_copied(broker, self._remote, tuple(TOPICS))
        with self._kafka(copies=False) as broker:
            _write_transactions(broker.bootstrap)
            self._records = _read_both(broker.bootstrap)
        with tiered_broker(self._kind, f"{NAME}-in-turns", self._remote, log_dir=self._log_dir) as broker:
            wait_until_ready(broker, tuple(TOPICS))
            self._must_be_the_same(broker)
            write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS)
            wait_until_copied(broker, self._remote, tuple(ALL_TOPICS))
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
            wait_until_ready(broker, tuple(ALL_TOPICS))
            self._must_be_the_same(broker)
            # Kafka's metadata does not know which producer ids we gave out meanwhile, so it gives them out again.
            write_all_codecs(broker.bootstrap, tuple(TOPICS), PARTITIONS, is_idempotent=False)
            wait_until_copied(broker, self._remote, tuple(ALL_TOPICS))
            self._must_be_the_same(broker, is_longer=True)

    def _kafka(self, *, copies: bool) -> AbstractContextManager[Target]:
        settings = {} if copies else COPY_NEVER
        return tiered_broker("kafka", NAME, self._remote, log_dir=self._log_dir, settings=settings)

    def _must_be_the_same(self, broker: Target, *, is_longer: bool = False) -> None:
        now = _read_both(broker.bootstrap)
        for isolation, before in self._records.items():
            must_be_same(before, now[isolation], is_longer=is_longer)


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
        level: read_all(bootstrap, tuple(ALL_TOPICS), PARTITIONS, settings={"isolation.level": level})
        for level in ("read_uncommitted", "read_committed")
    }
