"""Transactions of librdkafka: written in one go, or left open for others to look at."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from interop.records import SECONDS, read_all

TIMEOUT_MS = 600_000  # long enough that nobody ends an open transaction while a suite looks at it
READ_COMMITTED = {"isolation.level": "read_committed"}


class OpenTransaction:
    """Records of a transaction that has not ended. A block: a transaction that is open at its end stays open."""

    def __init__(self, bootstrap: str, transactional_id: str, topic: str, values: Sequence[str]) -> None:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 2}
        self._producer = Producer({**settings, "transaction.timeout.ms": TIMEOUT_MS, "linger.ms": 0})
        self._producer.init_transactions(SECONDS)
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(topic, value.encode(), partition=0)
        if self._producer.flush(SECONDS):
            raise RuntimeError(f"records of transaction {transactional_id} were not acknowledged")

    def __enter__(self) -> OpenTransaction:
        return self

    def __exit__(self, *_: object) -> None:
        del self._producer

    def commit(self) -> None:
        self._producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        self._producer.abort_transaction(SECONDS)

    def is_fenced(self) -> bool:
        """Whether a commit is refused for good."""
        try:
            self._producer.commit_transaction(SECONDS)
        except KafkaException as refusal:
            error = refusal.args[0]
            return bool(error.fatal() or error.txn_requires_abort())
        return False


def write_transaction(
    bootstrap: str, transactional_id: str, topic: str, values: Sequence[str], *, commits: bool = True
) -> None:
    """A whole transaction: committed, or aborted after its records were written."""
    with OpenTransaction(bootstrap, transactional_id, topic, values) as transaction:
        if commits:
            transaction.commit()
        else:
            transaction.abort()


def committed(bootstrap: str, topic: str) -> list[str]:
    """The values of partition 0 up to its last stable offset, in order, without those of aborted transactions."""
    records = read_all(bootstrap, [topic], 1, settings=READ_COMMITTED)
    return [(value or b"").decode() for _, (_, value, _) in sorted(records.items())]
