"""Which batches of clients a partition takes that lets no new transaction begin."""

from __future__ import annotations

from strandline.errors import TransactionAbortable
from strandline.log import UnifiedLog
from strandline.records import read_header


def check_transaction_goes_on(log: UnifiedLog, records: memoryview) -> None:
    """Refuse the batch that would begin a transaction. Raises TransactionAbortable, or CorruptMessage.

    Kafka answers the same when a partition is not part of a producer's transaction. It is not retriable on purpose: a
    producer that would try again until its delivery.timeout.ms holds its whole transaction open, while this one fails
    at once, and clients let the application abort it.
    """
    header = read_header(records)
    if not header.is_transactional:
        return
    entry = log.producers.entries.get(header.producer_id)
    if entry is not None and (entry.txn_first_offset >= 0 or entry.duplicate_of(header) is not None):
        return
    raise TransactionAbortable(
        f"No transaction can begin in {log.topic_partition} while its topic is being switched to diskless, which waits "
        "for the open ones. Abort the transaction and begin it again in a moment."
    )
