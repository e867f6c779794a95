"""Groups and transactions of a cluster of two brokers, by commands that know only one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.admin.commands.conftest import Command
from tests.admin.commands.transactions.late_write import leave_hanging
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.postgres import start_postgres

pytestmark = pytest.mark.timeout(120)
SETTINGS = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """Two brokers with topics `tides`, three records in each of its partitions, and `waves`, both on both."""
    url = start_postgres().new_database()
    with running_cluster(tmp_path_factory.mktemp("two"), url, settings=SETTINGS) as running:
        for topic in ("tides", "waves"):
            running.create(topic, partitions=4, via=1)
            assert set(running.leaders(topic, 1)) == {1, 2}
        with Producer({"bootstrap.servers": running.bootstrap}) as producer:
            for number in range(12):
                producer.produce("tides", b"value", partition=number % 4)
            assert producer.flush(30) == 0
        yield running


def _names(prefix: str) -> list[str]:
    """More names than chance puts on one coordinator."""
    return [f"{prefix}-{number}" for number in range(8)]


@pytest.mark.parametrize("via", [1, 2])
def test_groups_are_reset_described_and_deleted_through_either_broker(
    command: Command, cluster: BrokerCluster, via: int
) -> None:
    at = ("-b", cluster.brokers[via].bootstrap)
    groups = _names(f"group-{via}")
    for group in groups:
        outcome = command("groups", "reset-offsets", group, "-t", "tides", "--to-offset", "2", "--execute", *at)
        assert outcome.status == 0, outcome.err
    listed = {row["group"] for row in command("groups", "list", "--json", *at).json}
    assert set(groups) <= listed
    for group in groups:
        offsets = command("groups", "describe", group, "--json", *at).json["offsets"]
        assert [(row["committed"], row["lag"]) for row in offsets] == [(2, 1)] * 4
    assert command("groups", "delete", *groups, "--yes", *at).status == 0
    assert not set(groups) & {row["group"] for row in command("groups", "list", "--json", *at).json}


def test_lists_while_a_broker_is_away(command: Command, cluster: BrokerCluster) -> None:
    """That of groups is complete, since another replica leads; that of transactional ids says what it lacks."""
    at = ("-b", cluster.brokers[1].bootstrap)
    group, transactional_id = "group-before", "id-before"
    reset = command("groups", "reset-offsets", group, "-t", "tides", "--to-latest", "--execute", *at)
    assert reset.status == 0, reset.err
    Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id}).init_transactions(30)
    of_groups, of_ids = ("groups", "list", "--json", *at), ("transactions", "list", "--json", *at)
    before = command(*of_groups)
    assert (before.err, command(*of_ids).err) == ("", "")
    cluster.brokers[2].kill()
    try:
        cluster.wait_alive(1)
        after, lacking = command(*of_groups), command(*of_ids)
        assert (after.err, sorted(map(str, after.json))) == ("", sorted(map(str, before.json)))
        assert isinstance(lacking.json, list)
        assert lacking.err.startswith("strandline: Transactional ids are missing in the list: ")
    finally:
        cluster.brokers[2].start()
        cluster.wait_alive(1, 2)


@pytest.mark.parametrize("via", [1, 2])
def test_transactions_of_both_coordinators_hang_and_are_aborted_through_either_broker(
    command: Command, cluster: BrokerCluster, via: int
) -> None:
    at = ("-b", cluster.brokers[via].bootstrap)
    ids = _names(f"late-{via}")
    for number, transactional_id in enumerate(ids):
        leave_hanging(cluster.brokers[via].bootstrap, transactional_id, "waves", partition=number % 4)
    listed = {
        row["transactional_id"]: row["coordinator"] for row in command("transactions", "list", "--json", *at).json
    }
    assert {listed[transactional_id] for transactional_id in ids} == {1, 2}
    for transactional_id in ids:
        described = command("transactions", "describe", transactional_id, "--json", *at).json
        assert described["coordinator"] == listed[transactional_id]
    found = command("transactions", "find-hanging", "--json", *at).json
    assert sorted(row["partition"] for row in found) == [0, 0, 1, 1, 2, 2, 3, 3]
    for row in found:
        place = ("-t", row["topic"], "-p", str(row["partition"]), "--start-offset", str(row["start_offset"]))
        outcome = command("transactions", "abort", *place, "--yes", *at)
        assert outcome.status == 0, outcome.err
    assert command("transactions", "find-hanging", "--json", *at).json == []
