"""A log of Kafka that was adopted may have an open transaction: its switch waits for the end, and clients go on.

Strandline does not serve transactions yet: the records of one are put into the log of a broker that was killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from tests.broker import BrokerProcess, running_broker
from tests.clients.switching import (
    HYBRID,
    PRODUCER,
    abort,
    boundaries,
    described_state,
    open_transaction,
    put_into_log,
    switch,
    wait_draining,
    wait_state,
    wait_switched,
)
from tests.clients.tiering import QUICK, alter, create, first_local_offset, numbered, produce, read, values
from tests.moments import T0
from tests.waiting import wait_until
from tests.wirelevel.asking import ask_for_offset, client_of

LATEST = -1
READ_COMMITTED = 1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With a topic `t` of eleven records, the last one of which is in an open transaction."""
    with running_broker(tmp_path / "data", QUICK) as running:
        create(AdminClient({"bootstrap.servers": running.bootstrap}), "t", {"remote.storage.enable": "true"})
        produce(running, "t", numbered(0, 10))
        open_transaction(running, "t", 10)
        yield running


def end_transaction(broker: BrokerProcess, at: int, how: ControlType = ControlType.COMMIT) -> None:
    marker = EndTransactionMarker(how, 0)
    records = build_marker(
        marker, producer_id=PRODUCER, producer_epoch=0, timestamp_ms=T0, base_offset=at, leader_epoch=2
    )
    put_into_log(broker, "t", records)


def test_row_migration_pending_the_leader_appends_to_its_log_while_transactions_are_in_flight(
    broker: BrokerProcess,
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    switch(admin, "t")
    wait_draining(broker, "t")
    assert produce(broker, "t", numbered(11, 5)) == list(range(11, 16))
    with client_of(broker) as client:
        assert ask_for_offset(client, "t", LATEST).offset == 16
        assert ask_for_offset(client, "t", LATEST, isolation=READ_COMMITTED).offset == 10
    assert boundaries(broker, "t") == [-1]
    end_transaction(broker, at=16)
    assert wait_switched(broker, "t") == [17]
    assert produce(broker, "t", numbered(17, 5)) == list(range(17, 22))
    everything = [*range(16), *range(17, 22)]  # the marker has an offset
    assert values(read(broker, "t", 21)) == everything
    assert values(read(broker, "t", 21, isolation="read_committed")) == everything
    wait_state(broker, "t", HYBRID)


def test_a_switch_that_waits_for_a_transaction_can_be_aborted(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    switch(admin, "t")
    wait_draining(broker, "t")
    abort(admin, "t")
    assert described_state(admin, "t") == "TIERED_ONLY"
    assert produce(broker, "t", numbered(11, 5)) == list(range(11, 16))
    assert values(read(broker, "t", 16)) == list(range(16))
    assert values(read(broker, "t", 10, isolation="read_committed")) == list(range(10))


def test_an_aborted_transaction_below_the_boundary_stays_aborted(broker: BrokerProcess) -> None:
    """Also when remote storage alone has it."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    produce(broker, "t", numbered(11, 5))
    end_transaction(broker, at=16, how=ControlType.ABORT)
    switch(admin, "t")
    assert wait_switched(broker, "t") == [17]
    produce(broker, "t", numbered(17, 5))
    committed = [*range(10), *range(11, 16), *range(17, 22)]
    assert values(read(broker, "t", 20, isolation="read_committed")) == committed
    wait_state(broker, "t", HYBRID)
    alter(admin, "t", {"local.retention.ms": "1"})
    wait_until(lambda: first_local_offset(broker, "t") == 17, "the prefix to leave the disk")
    assert values(read(broker, "t", 20, isolation="read_committed")) == committed
    assert values(read(broker, "t", 21)) == sorted([10, *committed])
