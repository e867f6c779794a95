"""Parts of the delivery to share groups by themselves: failing records, bytes that are sent, transactions."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.coordinators.share_states import DeliveryBatch, DeliveryState
from strandline.errors import InvalidRequest
from strandline.reads import AbortedTransaction
from strandline.records import Record, build_batch
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.share_delivery.delivery import AcquiredBatch, AcquireLimits, FetchedBatch, ShareDelivery
from strandline.share_delivery.reading import SharedRecords
from strandline.share_delivery.sessions import SessionKey, ShareSession, ShareSessions
from strandline.share_errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

S = DeliveryState


def limits(max_deliveries: int = 5) -> AcquireLimits:
    return AcquireLimits(max_records=500, batch_size=500, max_locks=2000, max_deliveries=max_deliveries)


@pytest.mark.parametrize(
    ("count", "acquired"),
    [
        (2, [AcquiredBatch(0, 7, 3), AcquiredBatch(8, 9, 1)]),
        (3, [AcquiredBatch(0, 3, 4)]),
        (4, [AcquiredBatch(0, 0, 5)]),
    ],
)
def test_records_that_fail_often_come_with_fewer_others(count: int, acquired: list[AcquiredBatch]) -> None:
    delivery = ShareDelivery(0, [DeliveryBatch(0, 7, S.AVAILABLE, count)])
    batches = [FetchedBatch(0, 9)]
    assert delivery.acquire("a", 0, batches, limits(), deadline=1.0) == acquired


def test_records_that_fail_often_wait_for_a_fetch_of_their_own() -> None:
    delivery = ShareDelivery(0, [DeliveryBatch(0, 1, S.AVAILABLE, 1), DeliveryBatch(2, 3, S.AVAILABLE, 4)])
    batches = [FetchedBatch(0, 3)]
    assert delivery.acquire("a", 0, batches, limits(), deadline=1.0) == [AcquiredBatch(0, 1, 2)]
    assert delivery.acquire("b", 2, batches, limits(), deadline=1.0) == [AcquiredBatch(2, 2, 5)]
    assert delivery.acquire("c", 3, batches, limits(), deadline=1.0) == [AcquiredBatch(3, 3, 5)]


def _batch(base: int, count: int, producer_id: int = -1, *, is_transactional: bool = False) -> bytes:
    records = [Record(base + at, 1000, None, b"v") for at in range(count)]
    return bytes(build_batch(records, base_offset=base, producer_id=producer_id, is_transactional=is_transactional))


def _marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    return bytes(
        build_marker(
            EndTransactionMarker(kind, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp_ms=1000,
            base_offset=offset,
        )
    )


LOG = b"".join(
    [
        _batch(0, 2),
        _batch(2, 2, 7, is_transactional=True),
        _batch(4, 1, 8, is_transactional=True),
        _marker(5, 7, ControlType.ABORT),
        _batch(6, 2, 7, is_transactional=True),
        _marker(8, 8, ControlType.COMMIT),
        _marker(9, 7, ControlType.COMMIT),
    ]
)


def test_markers_and_records_of_aborted_transactions_are_not_delivered() -> None:
    committed = SharedRecords.of(LOG, [AbortedTransaction(7, 2)])
    assert [batch.first for batch in committed.batches if batch.is_deliverable] == [0, 4, 6]
    everything = SharedRecords.of(LOG, None)
    assert [batch.first for batch in everything.batches if batch.is_deliverable] == [0, 2, 4, 6]
    delivery = ShareDelivery(0)
    acquired = delivery.acquire("a", 0, committed.batches, limits(), deadline=1.0)
    assert acquired == [AcquiredBatch(0, 1, 1), AcquiredBatch(4, 4, 1), AcquiredBatch(6, 7, 1)]
    assert delivery.settled_count == 5


def test_a_read_without_anything_to_deliver_moves_the_start() -> None:
    delivery = ShareDelivery(0)
    found = SharedRecords.of(_marker(3, 7, ControlType.COMMIT), None)
    assert delivery.acquire("a", 0, found.batches, limits(), deadline=1.0) == []
    assert (delivery.start, delivery.next_offset()) == (4, 4)


def test_only_batches_with_acquired_records_are_sent() -> None:
    found = SharedRecords.of(LOG, None)
    assert found.covering([]) == b""
    assert SharedRecords.of(found.covering([AcquiredBatch(3, 4, 1)]), None).batches == found.batches[1:3]
    assert found.covering([AcquiredBatch(0, 1, 1), AcquiredBatch(6, 9, 1)]) is found.data


def test_a_batch_that_is_cut_is_left_out() -> None:
    found = SharedRecords.of(LOG[:-1], None)
    assert found.batches[-1].first == 8
    assert len(found.covering([AcquiredBatch(0, 9, 1)])) < len(LOG) - 1


def test_a_session_ends_with_its_connection_unless_the_member_has_begun_another_one() -> None:
    ended: list[ShareSession] = []
    sessions = ShareSessions(lambda: 10, ended.append)
    key = SessionKey("g", "m")

    def begin(connection_id: int) -> ShareSession:
        return sessions.open(key, 0, added=[], forgotten=[], has_acknowledgements=False, connection_id=connection_id)

    begin(1)
    second = begin(2)
    sessions.connection_closed(1)
    assert sessions.peek(key) is second
    assert ended == []
    sessions.connection_closed(2)
    assert ended == [second]
    assert len(sessions) == 0
    with pytest.raises(ShareSessionNotFound):
        sessions.advance(key, 1)


def test_a_session_that_may_not_begin_again_has_ended() -> None:
    limit, ended = 1, list[ShareSession]()
    sessions = ShareSessions(lambda: limit, ended.append)
    request = dict[str, Any](epoch=0, added=[], forgotten=[], has_acknowledgements=False, connection_id=1)
    first = sessions.open(SessionKey("g", "m"), **request)
    limit = 0
    with pytest.raises(ShareSessionLimitReached, match=r"group\.share\.max\.share\.sessions"):
        sessions.open(SessionKey("g", "m"), **request)
    assert ended == [first]


def test_a_session_cannot_begin_with_acknowledgements_and_its_epoch_never_becomes_zero_again() -> None:
    sessions = ShareSessions(lambda: 10, lambda session: None)
    key = SessionKey("g", "m")
    with pytest.raises(InvalidRequest, match="begins a share session"):
        sessions.open(key, 0, added=[], forgotten=[], has_acknowledgements=True, connection_id=1)
    session = sessions.open(key, 0, added=[], forgotten=[], has_acknowledgements=False, connection_id=1)
    session.epoch = 2**31 - 1
    sessions.advance(key, 2**31 - 1)
    assert session.epoch == 1
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.advance(key, 2)
