"""The errors that clients get while the control plane cannot be asked."""

from __future__ import annotations

from strandline.errors import KafkaStorageError, RequestTimedOut, StrandlineError
from strandline.sql import SqlError


def trouble_for_clients(error: SqlError, sentence: str) -> StrandlineError:
    """REQUEST_TIMED_OUT for trouble that passes, KAFKA_STORAGE_ERROR for the rest: for every request but Fetch.

    Fetch has KAFKA_STORAGE_ERROR for both. Apache Kafka's consumer throws IllegalStateException upon REQUEST_TIMED_OUT
    there, and librdkafka passes it on to the application; after KAFKA_STORAGE_ERROR all clients retry by themselves.
    """
    kind = RequestTimedOut if error.retriable else KafkaStorageError
    return kind(f"{sentence}: {error}")
