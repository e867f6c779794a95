"""Who holds a switch up, as `strandline migration status` tells it."""

from __future__ import annotations

from strandline.admin.commands.migration_holders import holders_text
from strandline.client import Cluster, sentences
from strandline.controlplane.values import MigrationState
from strandline.hybrid.switching.status import PartitionMigration, TopicMigrationStatus
from tests.admin.commands.scripted import scripted_broker


def test_if_coordinators_cannot_be_asked_the_producers_are_named_and_the_reason() -> None:
    held = PartitionMigration(partition=0, state=MigrationState.MIGRATING, held_by=(41, 42))
    status = TopicMigrationStatus(topic="orders", state=MigrationState.MIGRATING, partitions=(held,))
    topics = {"__transaction_state": 1}
    with scripted_broker({}, topics=topics) as broker, sentences(), Cluster(broker.bootstrap) as cluster:
        (told,) = holders_text(cluster, status)
    assert told.startswith("The switch waits for transactions of the producer ids 41, 42, whose transactional ids ")
    assert "LIST_TRANSACTIONS" in told
