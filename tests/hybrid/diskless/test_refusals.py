"""What clients are told when the database fails."""

from __future__ import annotations

import pytest

from strandline.controlplane import Refusal, trouble_for_clients
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange, RequestTimedOut, StrandlineError
from strandline.hybrid.diskless.refusals import error_of, storage_errors
from strandline.objects import ObjectStoreUnavailable
from strandline.sql import IntegrityViolation, SqlError, StoreMisconfigured, StoreUnavailable, TransactionConflict

KINDS: list[tuple[type[SqlError], type[StrandlineError]]] = [
    (StoreUnavailable, RequestTimedOut),
    (TransactionConflict, RequestTimedOut),
    (IntegrityViolation, KafkaStorageError),
    (StoreMisconfigured, KafkaStorageError),
    (SqlError, KafkaStorageError),
]


@pytest.mark.parametrize(("failure", "expected"), KINDS)
def test_what_passes_is_a_timeout_and_the_rest_a_storage_error(
    failure: type[SqlError], expected: type[StrandlineError]
) -> None:
    error = trouble_for_clients(failure("the reason"), "Offsets cannot be read")
    assert type(error) is expected
    assert str(error) == "Offsets cannot be read: the reason"
    with pytest.raises(expected, match="t-0 at the moment: the reason"), storage_errors("t-0"):
        raise failure("the reason")


def test_a_store_that_is_away_is_a_storage_error() -> None:
    with pytest.raises(KafkaStorageError, match="the reason"), storage_errors("t-0"):
        raise ObjectStoreUnavailable("the reason")


def test_a_log_that_is_not_there_sends_clients_to_the_metadata() -> None:
    assert isinstance(error_of(Refusal.UNKNOWN_LOG, "No."), NotLeaderOrFollower)
    assert isinstance(error_of(Refusal.OFFSET_OUT_OF_RANGE, "No."), OffsetOutOfRange)
    assert isinstance(error_of(Refusal.STALE_FILE, "No."), KafkaStorageError)
