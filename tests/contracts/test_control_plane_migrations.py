"""The contract of the control plane: switches of topics from classic to diskless, and the boundaries of partitions."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from strandline.controlplane import (
    MIGRATION_CHANNEL,
    BoundarySet,
    DisklessLog,
    MigrationState,
    ProducerBatches,
    Refusal,
    SqlControlPlane,
    TopicMigration,
    migrating_topics,
    request_migration,
)
from strandline.controlplane.switch_requests import ABORTED_FOR_MS
from tests.controlplane.making import NOW, OTHER_TOPIC, TOPIC, A, HandSetClock, bases, batch, commit
from tests.controlplane.switching import (
    CLASSIC,
    P,
    Q,
    R,
    abort,
    boundary,
    log_of,
    producer,
    request,
    switch,
    switched,
)
from tests.partitions import id_partition

NOT_FOUND, STALE, IS_SET = Refusal.MIGRATION_NOT_FOUND, Refusal.STALE_LEADER_EPOCH, Refusal.BOUNDARY_IS_SET


# Requests


async def test_switches_are_known_in_the_order_of_their_requests(plane: SqlControlPlane) -> None:
    topics = [CLASSIC, uuid.UUID(int=5), uuid.UUID(int=30)]
    for topic_id in topics:
        await request(plane, topic_id, 4)
    await request(plane, topics[0], 9)  # again: it keeps its place
    found = await plane.migrations.topic_migrations()
    assert [switch.topic_id for switch in found] == topics
    assert sorted(switch.position for switch in found) == [switch.position for switch in found]
    first = found[0]
    assert first == TopicMigration(
        position=first.position,
        topic_id=CLASSIC,
        topic="topic-15",
        partitions=4,
        requested_at_ms=first.requested_at_ms,
        sealed_at_ms=None,
        now_ms=NOW,
    )
    async with plane.store.transaction() as tx:
        assert list(await migrating_topics(tx)) == topics
    assert set(topics) <= await plane.lifecycle.topic_ids()
    assert not set(topics) & await plane.lifecycle.diskless_topic_ids(), "they may still be aborted"


async def test_a_topic_that_is_diskless_needs_no_switch(plane: SqlControlPlane) -> None:
    assert await request(plane, TOPIC, 2, is_flagged=True) == 0
    assert await request(plane, TOPIC, 2) == 0  # the setting was taken away from it, and is given back
    assert await request(plane, CLASSIC, 2, is_flagged=True) == 0  # its logs have not been created yet
    assert await request(plane, TOPIC, 3) > 0  # one of its partitions is not in the control plane


async def test_a_request_and_an_abort_wake_listeners(plane: SqlControlPlane) -> None:
    heard = asyncio.Event()
    stop = plane.store.listen(MIGRATION_CHANNEL, heard.set)
    for change in (request, abort):
        heard.clear()
        await change(plane)
        async with asyncio.timeout(10):
            await heard.wait()
    stop()


async def test_a_request_that_is_rolled_back_leaves_nothing(plane: SqlControlPlane) -> None:
    async def request_and_fail() -> None:
        async with plane.store.transaction() as tx:
            await request_migration(tx, CLASSIC, "topic-15", 2, is_flagged=False)
            assert await migrating_topics(tx) == [CLASSIC]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await request_and_fail()
    assert await plane.migrations.topic_migrations() == []


async def test_an_aborted_switch_is_gone_and_its_leader_cannot_bring_it_back(plane: SqlControlPlane) -> None:
    position = await request(plane)
    assert await abort(plane) is None
    assert await abort(plane) is None
    assert await plane.migrations.topic_migrations() == []
    assert CLASSIC not in await plane.lifecycle.topic_ids()
    (answer,) = await plane.migrations.initialize_diskless_migration([boundary(P, 10, position=position)])
    assert (answer.refusal, answer.boundary) == (NOT_FOUND, -1)
    assert "aborted" in answer.message
    assert await plane.reads.logs([P]) == {}
    again = await request(plane)
    assert again > position
    assert await switch(plane, boundary(P, 10, position=position)) == [NOT_FOUND]
    assert await switch(plane, boundary(P, 10, position=again)) == [None]


async def test_a_switch_with_a_boundary_cannot_be_aborted(plane: SqlControlPlane) -> None:
    position = await request(plane, partitions=3)
    await switch(plane, boundary(Q, 10, producer(7, (0, 1, 9)), position=position))
    assert await abort(plane) == 1
    assert [switch.position for switch in await plane.migrations.topic_migrations()] == [position]
    assert (await log_of(plane, Q)).diskless_log_start_offset == 10
    assert len(await plane.producers.producers(Q)) == 1


async def test_an_abort_removes_what_was_reset(plane: SqlControlPlane) -> None:
    position = await switched(plane, 100, producer(7, (0, 1, 9)))
    await plane.migrations.reset_diskless_log_start_offset(P, 4)
    assert await abort(plane) is None
    assert await plane.reads.logs([P]) == {}
    assert CLASSIC not in await plane.lifecycle.topic_ids()
    async with plane.store.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM inkless_producer_state") == [(0,)]
    assert await switch(plane, boundary(P, 100, position=position, epoch=9)) == [NOT_FOUND]


# Logs at offset 0


async def test_partitions_of_a_switch_are_never_created_at_0_and_later_ones_are(plane: SqlControlPlane) -> None:
    """Raising the partition count during a switch must not lose the prefix of the topic."""
    position = await request(plane, partitions=2)
    await plane.lifecycle.create_logs([P, Q, R])
    assert set(await plane.reads.logs([P, Q, R])) == {R}
    assert (await log_of(plane, R)).diskless_log_start_offset == 0
    await switch(plane, boundary(P, 10, position=position))
    await plane.lifecycle.create_logs([P, Q, R])
    assert {key: log.diskless_log_start_offset for key, log in (await plane.reads.logs([P, Q, R])).items()} == {
        P: 10,
        R: 0,
    }
    assert await switch(plane, boundary(R, 10, position=position)) == [IS_SET]


async def test_a_broker_that_has_not_heard_of_the_abort_creates_no_logs(plane: SqlControlPlane) -> None:
    """They would begin at 0, beside the records of the classic topic."""
    await request(plane)
    await abort(plane)
    await plane.lifecycle.create_logs([P, Q])
    assert await plane.reads.logs([P, Q]) == {}
    position = await request(plane)
    assert await switch(plane, boundary(P, 10, position=position)) == [None]


async def test_aborted_switches_are_forgotten_after_a_day(plane: SqlControlPlane) -> None:
    await request(plane)
    await abort(plane)
    async with plane.store.transaction() as tx:
        await tx.execute(f"UPDATE inkless_migration SET aborted_at_ms = aborted_at_ms - {ABORTED_FOR_MS + 1}")
    await request(plane, OTHER_TOPIC, 5)
    async with plane.store.transaction() as tx:
        assert await tx.fetch("SELECT topic_name FROM inkless_migration") == [("topic-8",)]


async def test_a_deleted_topic_takes_its_switch_with_it(plane: SqlControlPlane) -> None:
    position = await request(plane)
    assert CLASSIC in await plane.lifecycle.topic_ids()
    await plane.lifecycle.delete_topics([CLASSIC])
    assert CLASSIC not in await plane.lifecycle.topic_ids()
    assert await plane.migrations.topic_migrations() == []
    assert await switch(plane, boundary(P, 10, position=position)) == [NOT_FOUND]


async def test_a_log_that_is_being_deleted_gets_no_boundary(plane: SqlControlPlane) -> None:
    position = await switched(plane)
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET is_deleted = TRUE WHERE topic_name = 'topic-15'")
    assert await switch(plane, boundary(P, 100, position=position)) == [NOT_FOUND]
    assert (await plane.migrations.reset_diskless_log_start_offset(P, 5)).refusal is Refusal.UNKNOWN_LOG
    assert await plane.migrations.migration_states([CLASSIC]) == {}
    await plane.lifecycle.delete_topics([CLASSIC])
    assert CLASSIC not in await plane.lifecycle.topic_ids()


# Boundaries


async def test_a_boundary_makes_the_log_diskless_from_there_on(plane: SqlControlPlane) -> None:
    position = await request(plane)
    new = boundary(P, 100, position=position, epoch=3, log_start=20, tiered=(20, 79))
    assert await plane.migrations.initialize_diskless_migration([new]) == [BoundarySet(None, 100, 3)]
    assert CLASSIC in await plane.lifecycle.diskless_topic_ids()
    assert await log_of(plane, P) == DisklessLog(
        partition=P,
        log_start_offset=20,
        high_watermark=100,
        tiered_log_start_offset=20,
        tiered_high_offset=79,
        diskless_start_offset=100,
        diskless_log_start_offset=100,
        diskless_log_start_epoch=3,
        migration_state=MigrationState.MIGRATING,
        byte_size=0,
        last_epoch=3,
    )
    assert bases(await commit(plane, "one", batch(P, 3), batch(P, 2, leader_epoch=1))) == [100, 103]
    assert await plane.migrations.initialize_diskless_migration([]) == []


async def test_a_boundary_wakes_listeners(plane: SqlControlPlane) -> None:
    position = await request(plane)
    heard = asyncio.Event()
    stop = plane.store.listen(MIGRATION_CHANNEL, heard.set)
    heard.clear()
    await switch(plane, boundary(P, 100, position=position))
    async with asyncio.timeout(10):
        await heard.wait()
    stop()


async def test_the_same_boundary_with_other_producers_is_refused_while_nothing_is_behind_it(
    plane: SqlControlPlane,
) -> None:
    first = (producer(7, (0, 1, 9)), producer(8, (0, 2, 10)))
    position = await switched(plane, 100, *first)
    for others in ((), first[:1], (*first, producer(9, (0, 1, 5))), (first[0], producer(8, (0, 2, 10), epoch=1))):
        (answer,) = await plane.migrations.initialize_diskless_migration([boundary(P, 100, *others, position=position)])
        assert answer[:3] == (IS_SET, 100, 3)
        assert "with other producers" in answer.message
    assert await switch(plane, boundary(P, 100, *reversed(first), position=position, epoch=4)) == [None]
    assert [entry.producer_id for entry in await plane.producers.producers(P)] == [7, 8]
    await commit(plane, "one", batch(P, producer=(7, 0, 1)))
    assert await switch(plane, boundary(P, 100, *first, position=position)) == [None], "they have written since"


async def test_the_same_boundary_again_changes_nothing(plane: SqlControlPlane, time: HandSetClock) -> None:
    position = await switched(plane, 100, producer(7, (0, 2, 98)), partitions=1)
    await commit(plane, "one", batch(P, 3, producer=(7, 0, 2)))
    before, seeds = await log_of(plane, P), await plane.producers.producers(P)
    time.now += 1
    for epoch in (3, 4):
        again = boundary(P, 100, producer(8, (0, 1, 9)), position=position, epoch=epoch, log_start=50)
        assert await plane.migrations.initialize_diskless_migration([again]) == [BoundarySet(None, 100, 3)]
    assert (await log_of(plane, P), await plane.producers.producers(P)) == (before, seeds)
    assert await plane.migrations.complete_migration(CLASSIC) is None
    assert await switch(plane, boundary(P, 100, position=position)) == [None]  # an answer was lost, long ago


async def test_another_boundary_is_refused_whatever_its_epoch(plane: SqlControlPlane) -> None:
    position = await switched(plane, 100)
    for offset, epoch in ((101, 3), (99, 3), (101, 8), (0, 8)):
        (answer,) = await plane.migrations.initialize_diskless_migration(
            [boundary(P, offset, position=position, epoch=epoch)]
        )
        assert answer[:3] == (IS_SET, 100, 3)
        assert "100" in answer.message
    assert (await log_of(plane, P)).high_watermark == 100


async def test_a_stale_leader_is_refused(plane: SqlControlPlane) -> None:
    position = await switched(plane, 100)
    for offset in (100, 90):
        (answer,) = await plane.migrations.initialize_diskless_migration(
            [boundary(P, offset, position=position, epoch=2)]
        )
        assert answer[:3] == (STALE, 100, 3)
    await plane.migrations.reset_diskless_log_start_offset(P, 5)
    assert await switch(plane, boundary(P, 100, position=position, epoch=4)) == [STALE]
    assert await switch(plane, boundary(P, 120, position=position, epoch=5)) == [None]


async def test_a_refused_partition_does_not_stop_the_others(plane: SqlControlPlane) -> None:
    position = await switched(plane, 100, partitions=3)
    answers = await switch(
        plane,
        boundary(P, 50, position=position),
        boundary(Q, 7, position=position),
        boundary(R, 7, position=position + 1),
        boundary(A, 7, position=position),
    )
    assert answers == [IS_SET, None, NOT_FOUND, IS_SET]
    assert set(await plane.reads.logs([P, Q, R])) == {P, Q}


async def test_an_empty_partition_is_diskless_at_once(plane: SqlControlPlane) -> None:
    position = await request(plane, partitions=2)
    await switch(plane, boundary(P, 0, position=position))
    assert (await log_of(plane, P)).migration_state is MigrationState.DISKLESS_ONLY
    assert [switch.sealed_at_ms for switch in await plane.migrations.topic_migrations()] == [None]
    await switch(plane, boundary(Q, 40, position=position, log_start=40))
    assert (await log_of(plane, Q)).migration_state is MigrationState.DISKLESS_ONLY
    assert await plane.migrations.topic_migrations() == []


async def test_a_switch_is_sealed_when_the_last_partition_has_its_boundary(
    plane: SqlControlPlane, time: HandSetClock
) -> None:
    position = await request(plane, partitions=3)
    await plane.lifecycle.create_logs([id_partition(CLASSIC, 3)])  # added since: it does not count
    await switch(plane, boundary(P, 10, position=position), boundary(R, 10, position=position))
    assert [switch.sealed_at_ms for switch in await plane.migrations.topic_migrations()] == [None]
    time.now += 5
    await switch(plane, boundary(Q, 10, position=position))
    time.now += 5
    await switch(plane, boundary(Q, 10, position=position))
    assert [(switch.sealed_at_ms, switch.now_ms) for switch in await plane.migrations.topic_migrations()] == [
        (NOW + 5, NOW + 10)
    ]


async def test_offsets_that_no_log_can_have_are_a_mistake_of_the_caller(plane: SqlControlPlane) -> None:
    position = await request(plane)
    for wrong in (
        boundary(P, 10, position=position, log_start=11),
        boundary(P, 10, position=position, tiered=(0, 10)),
        boundary(P, -1, position=position),
    ):
        with pytest.raises(ValueError, match="cannot have these offsets"):
            await plane.migrations.initialize_diskless_migration([wrong])
    assert await plane.reads.logs([P]) == {}


# Resets


async def test_a_reset_unsets_the_boundary_and_the_switch_goes_on(plane: SqlControlPlane) -> None:
    position = await request(plane, partitions=1)
    await switch(plane, boundary(P, 100, producer(7, (0, 1, 99)), position=position))
    assert await plane.migrations.reset_diskless_log_start_offset(P, 4) == BoundarySet(None, -1, 4)
    assert await plane.migrations.reset_diskless_log_start_offset(P, 6) == BoundarySet(None, -1, 4)  # nothing to do
    log = await log_of(plane, P)
    assert (log.diskless_log_start_offset, log.migration_state) == (-1, MigrationState.MIGRATING)
    (refused,) = await commit(plane, "one", batch(P))
    assert refused.refusal is Refusal.UNKNOWN_LOG
    assert [(one.position, one.sealed_at_ms) for one in await plane.migrations.topic_migrations()] == [(position, None)]
    await switch(plane, boundary(P, 150, producer(8, (0, 1, 149)), position=position, epoch=5, log_start=120))
    log = await log_of(plane, P)
    assert (log.diskless_log_start_offset, log.high_watermark, log.log_start_offset) == (150, 150, 120)
    assert (log.diskless_log_start_epoch, log.last_epoch) == (5, 5)
    assert [state.producer_id for state in await plane.producers.producers(P)] == [
        8
    ]  # the earlier seeds are overwritten


async def test_a_reset_after_the_end_of_the_switch_begins_it_again(plane: SqlControlPlane) -> None:
    position = await request(plane, partitions=2)
    await switch(plane, boundary(P, 100, position=position), boundary(Q, 0, position=position))
    assert await plane.migrations.complete_migration(CLASSIC) is None
    await plane.migrations.reset_diskless_log_start_offset(P, 4)
    (again,) = await plane.migrations.topic_migrations()
    assert (again.topic_id, again.topic, again.partitions, again.sealed_at_ms) == (CLASSIC, "topic-15", 2, None)
    assert again.position > position
    assert await request(plane, is_flagged=True) == again.position
    assert await switch(plane, boundary(P, 120, position=again.position, epoch=4)) == [None]
    assert [one.sealed_at_ms for one in await plane.migrations.topic_migrations()] == [NOW]


async def test_a_flagged_topic_is_requested_again_if_a_boundary_was_reset(plane: SqlControlPlane) -> None:
    await switched(plane, 100, partitions=1)
    await plane.migrations.reset_diskless_log_start_offset(P, 4)
    async with plane.store.transaction() as tx:
        await tx.execute("DELETE FROM inkless_migration")
    assert await request(plane, partitions=1, is_flagged=True) > 0


async def test_a_reset_is_refused_with_records_behind_the_boundary(plane: SqlControlPlane) -> None:
    await switched(plane, 100)
    assert (await plane.migrations.reset_diskless_log_start_offset(P, 2))[:3] == (STALE, 100, 3)
    await commit(plane, "one", batch(P))
    await plane.trimming.delete_records({P: -1})  # they are gone, but their offsets were given out
    answer = await plane.migrations.reset_diskless_log_start_offset(P, 9)
    assert answer[:3] == (IS_SET, 100, 3)
    assert "101" in answer.message
    assert (await plane.migrations.reset_diskless_log_start_offset(Q, 9)).refusal is Refusal.UNKNOWN_LOG
    assert (await log_of(plane, P)).diskless_log_start_offset == 100


# Producers


async def test_sequences_continue_across_the_boundary_without_duplicate_or_gap(plane: SqlControlPlane) -> None:
    await switched(plane, 100, producer(7, (0, 3, 90), (3, 2, 93)), producer(8, (10, 5, 95), epoch=2))
    duplicate, following, gap, other, fenced = await commit(
        plane,
        "one",
        batch(P, 2, producer=(7, 0, 3)),
        batch(P, 4, producer=(7, 0, 5)),
        batch(P, 1, producer=(7, 0, 10)),
        batch(P, 1, producer=(8, 2, 15)),
        batch(P, 1, producer=(8, 1, 0)),
    )
    assert (duplicate.base_offset, duplicate.is_duplicate, duplicate.log_append_time_ms) == (93, True, 993)
    assert (following.base_offset, following.is_duplicate) == (100, False)
    assert gap.refusal is Refusal.OUT_OF_ORDER_SEQUENCE
    assert other.base_offset == 104
    assert fenced.refusal is Refusal.INVALID_PRODUCER_EPOCH
    first, again = await commit(plane, "two", batch(P, 3, producer=(7, 0, 0)), batch(P, 4, producer=(7, 0, 5)))
    assert [(answer.base_offset, answer.is_duplicate) for answer in (first, again)] == [(90, True), (100, True)]
    assert await plane.producers.producers(P) == [ProducerBatches(7, 0, 8, 1_000), ProducerBatches(8, 2, 15, 1_000)]


async def test_every_producer_keeps_its_five_newest_batches(plane: SqlControlPlane) -> None:
    sent = [(number, 1, 90 + number) for number in range(7)]
    await switched(plane, 100, *(producer(number, *sent) for number in range(3)))
    for number in range(3):
        answers = await commit(
            plane, f"f{number}", *(batch(P, producer=(number, 0, sequence)) for sequence, _, _ in sent)
        )
        assert bases(answers) == [-1, -1, 92, 93, 94, 95, 96]
    assert (await log_of(plane, P)).high_watermark == 100


async def test_a_producer_without_batches_keeps_its_epoch(plane: SqlControlPlane) -> None:
    """As a marker leaves it, which moves a producer to its next epoch."""
    await switched(plane, 100, producer(7, epoch=4))
    old, gap, first = await commit(
        plane,
        "one",
        batch(P, producer=(7, 3, 0)),
        batch(P, producer=(7, 4, 5)),
        batch(P, producer=(7, 4, 0)),
    )
    assert old.refusal is Refusal.INVALID_PRODUCER_EPOCH
    assert gap.refusal is Refusal.OUT_OF_ORDER_SEQUENCE
    assert first.base_offset == 100


async def test_producers_of_the_prefix_are_not_silent_at_once(plane: SqlControlPlane, time: HandSetClock) -> None:
    time.now = 1_000_000
    await switched(plane, 100, producer(7, (0, 1, 9)))  # its last record is as old as the hills
    assert await plane.producers.expire_producers(silent_ms=60, limit=10) == 0
    time.now += 61
    assert await plane.producers.expire_producers(silent_ms=60, limit=10) == 1


@pytest.mark.parametrize(("partitions", "producers"), [(64, 100)])
async def test_a_large_group_is_one_transaction(plane: SqlControlPlane, partitions: int, producers: int) -> None:
    position = await request(plane, partitions=partitions)
    keys = [id_partition(CLASSIC, number) for number in range(partitions)]
    seeds = [producer(number, *((n, 1, n) for n in range(5))) for number in range(producers)]
    answers = await plane.migrations.initialize_diskless_migration(
        [boundary(key, 50 + number, *seeds, position=position) for number, key in enumerate(reversed(keys))]
    )
    assert answers == [BoundarySet(None, 50 + number, 3) for number in range(partitions)]
    (one,) = await plane.migrations.topic_migrations()
    assert one.sealed_at_ms == NOW
    async with plane.store.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM inkless_producer_state") == [(partitions * producers,)]
    placed = await commit(plane, "one", *(batch(key, producer=(number, 0, 5)) for number, key in enumerate(keys)))
    assert bases(placed) == [50 + number for number in reversed(range(partitions))]
