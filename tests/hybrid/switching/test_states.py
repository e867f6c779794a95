"""`diskless.migration.state` of a topic follows from its flags and from the states of its partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import pytest

from strandline.config import Settings
from strandline.controlplane import SqlControlPlane
from strandline.controlplane.database import Database
from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.hybrid.switching.states import TopicMigrationStates, state_of
from strandline.metadata import TopicImage
from strandline.model import TopicIdPartition, TopicPartition
from strandline.sql import StoreUnavailable, open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import MEMORY, open_cluster

TOPIC = UUID(int=7)
MIGRATING, HYBRID, DISKLESS_ONLY = MigrationState.MIGRATING, MigrationState.HYBRID, MigrationState.DISKLESS_ONLY


def log(partition: int, state: MigrationState | None) -> DisklessLog:
    """The log of a partition; None: its boundary is not set."""
    return DisklessLog(
        partition=TopicIdPartition(TOPIC, TopicPartition("t", partition)),
        log_start_offset=0,
        high_watermark=5,
        diskless_log_start_offset=-1 if state is None else 5,
        migration_state=state or MIGRATING,
    )


@pytest.mark.parametrize(
    ("states", "switched", "expected"),
    [
        ([None, HYBRID], 0, MIGRATING),
        ([MIGRATING, HYBRID, DISKLESS_ONLY], 0, MIGRATING),
        ([HYBRID, DISKLESS_ONLY], 0, HYBRID),
        ([DISKLESS_ONLY, DISKLESS_ONLY], 0, DISKLESS_ONLY),
        ([HYBRID], 2, MIGRATING),
        ([HYBRID], 1, HYBRID),
        ([], 3, MIGRATING),
        ([], 0, DISKLESS_ONLY),
    ],
    ids=[
        "a boundary was reset",
        "one is migrating",
        "one is hybrid",
        "none has older records",
        "one has no boundary yet",
        "one that was added has no log yet",
        "requested just now",
        "created diskless just now",
    ],
)
def test_the_state_of_a_topic(states: Sequence[MigrationState | None], switched: int, expected: MigrationState) -> None:
    logs = [log(number, state) for number, state in enumerate(states)]
    assert state_of(logs, partitions=max(2, len(states)), switched=switched) is expected


class CountedMigrations(SqlMigrations):
    """Counts the queries."""

    queries: int = 0

    async def migration_states(self, topic_ids: Collection[UUID]) -> Mapping[UUID, Sequence[DisklessLog]]:
        self.queries += 1
        return await super().migration_states(topic_ids)


async def test_the_control_plane_is_asked_once_and_only_about_topics_with_the_flag() -> None:
    async with open_cluster(properties={"remote.log.storage.system.enable": "true"}) as cluster:
        await cluster.create("plain")
        await cluster.create("tiered", configs={"remote.storage.enable": "true"})
        diskless = [await cluster.create(name, configs={"diskless.enable": "true"}) for name in ("a", "b")]
        plane = SqlControlPlane(cluster.sql, clock=VirtualClock())
        await plane.lifecycle.create_logs(
            [TopicIdPartition(one.topic_id, TopicPartition(one.name, 0)) for one in diskless]
        )
        migrations = CountedMigrations(Database(cluster.sql, clock=VirtualClock()))
        states = TopicMigrationStates(
            migrations, lambda name: Settings().topic_config(cluster.image.topic_overrides(name))
        )
        topics = cluster.image.topics
        assert await states.of_topics([topics["plain"], topics["tiered"]]) == {"plain": "N/A", "tiered": "TIERED_ONLY"}
        assert migrations.queries == 0
        assert await states.of_topics(list(topics.values())) == {
            "plain": "N/A",
            "tiered": "TIERED_ONLY",
            "a": "DISKLESS_ONLY",
            "b": "DISKLESS_ONLY",
        }
        assert migrations.queries == 1


async def test_the_state_is_unknown_while_the_database_does_not_answer() -> None:
    async with open_store(MEMORY) as sql:
        migrations = SqlMigrations(Database(sql, clock=VirtualClock()))
    with pytest.raises(StoreUnavailable):
        await migrations.topic_migrations()
    states = TopicMigrationStates(migrations, lambda _: Settings().topic_config({"diskless.enable": "true"}))
    assert await states.of_topics([TopicImage("t", TOPIC, ())]) == {"t": "UNKNOWN"}
