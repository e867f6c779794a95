"""Transactions: which producer may write under a transactional id, what a transaction has reached, and how it ends.

Why it exists: exactly-once producers. The state of each transactional id is a record in `__transaction_state`, as in
Kafka; the partition of the topic that an id belongs to decides which broker coordinates it.

Here: `states` and `metadata` (what a transaction is and how it changes), `rules` (what becomes of a request), `schemas`
(the records), `shard` (what is in memory and written), `markers` and `marker_writer` (the ends of transactions, on
their way and in partitions), `admissions` (permission for a partition to take records), `coordinator` (requests). What
does not go here: what a partition makes of transactional records, which is the log's.
"""

from strandline.coordinators.transactions.admissions import (
    Admission,
    AdmissionResults,
    Participant,
    TransactionAdmissions,
    producer_error,
)
from strandline.coordinators.transactions.coordinator import (
    TransactionCoordinator,
    TransactionFilter,
    TransactionLimits,
    TransactionsStatus,
    transaction_state_topic,
)
from strandline.coordinators.transactions.marker_writer import MarkerWriter
from strandline.coordinators.transactions.markers import MarkerChannel, MarkerResults, TransactionMarker
from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.rules import Verified
from strandline.coordinators.transactions.states import TransactionState

__all__ = [
    "Admission",
    "AdmissionResults",
    "MarkerChannel",
    "MarkerResults",
    "MarkerWriter",
    "Participant",
    "TransactionAdmissions",
    "TransactionCoordinator",
    "TransactionFilter",
    "TransactionLimits",
    "TransactionMarker",
    "TransactionMetadata",
    "TransactionState",
    "TransactionsStatus",
    "Verified",
    "producer_error",
    "transaction_state_topic",
]
