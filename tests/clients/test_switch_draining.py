"""A switch that waits for a transaction which does not end: others write meanwhile, and an operator can end it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.admin.commands.conftest import Command, command
from tests.broker import BrokerProcess, running_broker
from tests.clients.switching import HYBRID, boundaries, status, switch, wait_state
from tests.clients.tiering import QUICK, TIERED, create, numbered, produce
from tests.clients.transactions import transactional_producer
from tests.waiting import wait_until

__all__ = ["command"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With a tiered topic `t`, and windows in which new transactions are refused that are short."""
    with running_broker(tmp_path / "data", {**QUICK, "inkless.migration.drain.wait.ms": "200"}) as running:
        create(AdminClient({"bootstrap.servers": running.bootstrap}), "t", TIERED)
        produce(running, "t", numbered(0, 10))
        yield running


def test_who_holds_a_switch_is_told_others_write_and_the_operator_may_have_it_aborted(
    broker: BrokerProcess, command: Command
) -> None:
    holder = transactional_producer(broker.bootstrap, "slow")
    holder.begin_transaction()
    holder.produce("t", b"open")
    holder.flush()
    switch(AdminClient({"bootstrap.servers": broker.bootstrap}), "t")
    wait_until(lambda: status(broker, "t")["partitions"][0]["held_by_producers"] != [], "the switch to step back")
    other = transactional_producer(broker.bootstrap, "quick")
    for _ in range(5):
        other.begin_transaction()
        other.produce("t", b"committed")
        other.commit_transaction()
    assert boundaries(broker, "t") == [-1]
    assert (
        "The switch waits for the transaction of slow (producer id"
        in command("migration", "status", "t", "--bootstrap", broker.bootstrap).out
    )
    done = command("migration", "start", "t", "--wait", "--abort-transactions", "--bootstrap", broker.bootstrap)
    assert done.status == 0, done.err
    assert "The transaction of slow was aborted" in done.err
    assert boundaries(broker, "t")[0] > 10
    wait_state(broker, "t", HYBRID)


def test_only_a_command_that_waits_can_abort_transactions(broker: BrokerProcess, command: Command) -> None:
    refused = command("migration", "start", "t", "--abort-transactions", "--bootstrap", broker.bootstrap)
    assert refused.status == 1
    assert "needs --wait" in refused.err
    assert boundaries(broker, "t") == [-1] or status(broker, "t")["state"] == "TIERED_ONLY"
