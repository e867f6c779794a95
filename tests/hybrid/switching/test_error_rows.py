"""The rows about a boundary that the leader of a partition does not know: the error for each kind of trouble."""

from __future__ import annotations

import pytest

from strandline.controlplane.errors import trouble_for_clients
from strandline.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    RequestTimedOut,
    StrandlineError,
)
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.parts.unsettled import UnsettledPart
from strandline.log import AppendOrigin
from strandline.reads import EARLIEST, LATEST, FetchIsolation
from strandline.replication import Append
from strandline.sql import SqlError
from strandline.sql.errors import StoreUnavailable
from tests.replication.conftest import Fixture, batch, fixture, image

__all__ = ["fixture"]

TRANSIENT, FATAL = StoreUnavailable("The database does not answer."), SqlError("The schema is damaged.")


def unsettled(fixture: Fixture, trouble: SqlError | None) -> ServedPartition:
    """A partition whose leader has asked the control plane in vain; without a trouble, that has not asked yet."""
    replica = fixture.partition()
    replica.follow(image(epoch=3))
    part = UnsettledPart(replica)
    part.problem = None if trouble is None else trouble_for_clients(trouble, "The boundary cannot be asked for")
    return ServedPartition(part)


async def errors_of(partition: ServedPartition) -> dict[str, type[StrandlineError]]:
    """Of every request."""
    found: dict[str, type[StrandlineError]] = {}

    def note(what: str, error: StrandlineError) -> None:
        found[what] = type(error)

    try:
        partition.appends.append(Append(batch(b"x"), acks=-1, origin=AppendOrigin.CLIENT, done=lambda _: None))
    except StrandlineError as error:
        note("produce", error)
    try:
        partition.read_now(0, 1000, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)
    except StrandlineError as error:
        note("fetch", error)
    for timestamp in (EARLIEST, LATEST, 0):
        try:
            await partition.list_offset(timestamp, isolation=FetchIsolation.HIGH_WATERMARK)
        except StrandlineError as error:
            note(f"list offsets {timestamp}", error)
    for what, query in (
        ("epoch", partition.end_offset_for_epoch(0, current_leader_epoch=-1)),
        ("delete records", partition.newest.delete_records(1)),
        ("producers", partition.newest.active_producers()),
    ):
        try:
            await query
        except StrandlineError as error:
            note(what, error)
    assert len(found) == 8, "nothing is served"
    return found


async def test_row_b0_was_not_asked_for_yet_not_leader_or_follower(fixture: Fixture) -> None:
    assert set((await errors_of(unsettled(fixture, None))).values()) == {NotLeaderOrFollower}


async def test_row_transient_lookup_failure_request_timed_out_for_writes_and_list_offsets(fixture: Fixture) -> None:
    """Readers get NOT_LEADER_OR_FOLLOWER, upon which every client retries; not so upon REQUEST_TIMED_OUT of a Fetch."""
    found = await errors_of(unsettled(fixture, TRANSIENT))
    timed_out = [found.pop(f"list offsets {timestamp}") for timestamp in (EARLIEST, LATEST, 0)]
    assert {found.pop("produce"), *timed_out} == {RequestTimedOut}
    assert set(found.values()) == {NotLeaderOrFollower}


async def test_row_hard_control_plane_failure_kafka_storage_error(fixture: Fixture) -> None:
    assert set((await errors_of(unsettled(fixture, FATAL))).values()) == {KafkaStorageError}


async def test_row_a_client_in_another_epoch_is_told_so_first(fixture: Fixture) -> None:
    with pytest.raises(FencedLeaderEpoch):
        unsettled(fixture, None).newest.check_leader(2)
    with pytest.raises(NotLeaderOrFollower):
        unsettled(fixture, None).newest.check_leader(3)
