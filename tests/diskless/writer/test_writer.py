"""The writer on a directory and SQLite: what is acknowledged, in which order, and what failures leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock
from strandline.controlplane import FindBatches
from strandline.diskless.values import DisklessAppended
from strandline.diskless.wal import verify
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OutOfOrderSequence, RequestTimedOut
from strandline.objects import ObjectStoreError, ObjectStoreUnavailable
from strandline.records import TimestampType, read_header
from strandline.sql import IntegrityViolation, StoreUnavailable, TransactionConflict
from strandline.testing.clock import VirtualClock
from tests.controlplane.making import HandSetClock
from tests.diskless.batches import NOON_MS
from tests.diskless.writer.writing import LIMITS, P0, P1, UNKNOWN, World, batch, open_world
from tests.waiting import until


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


# Well


async def test_a_batch_is_readable_at_the_offset_that_is_acknowledged(world: World) -> None:
    one, other = batch(P0, records=3, value=b"one"), batch(P0, records=2, value=b"other")
    uploaded = [bytes(one.buffer), bytes(other.buffer)]
    assert await world.result(world.send(one)) == DisklessAppended(0, -1, 0)
    assert await world.result(world.send(other)) == DisklessAppended(3, -1, 0)
    assert await world.stored(P0) == [(0, uploaded[0]), (3, uploaded[1])]
    assert [read_header(each.buffer).base_offset for each in (one, other)] == [0, 3]


async def test_the_batches_of_one_turn_of_the_loop_share_an_object(world: World) -> None:
    numbers = [world.send(batch(partition, value=b"%d" % i)) for i in range(5) for partition in (P1, P0)]
    assert [await world.offset(number) for number in numbers] == [i for i in range(5) for _ in range(2)]
    (key,) = await world.store.keys()
    footer = verify(await world.store.get(key))
    assert [(extent.partition, extent.batch_count) for extent in footer.extents] == [(0, 5), (1, 5)]
    assert (footer.broker_id, footer.cluster_id) == (7, "a-cluster")


async def test_readers_get_the_epoch_that_the_commit_kept(world: World) -> None:
    """The metadata of this broker went back to an old epoch: another broker's commit has shown a newer one."""
    newer, *late = [batch(P0, leader_epoch=epoch) for epoch in (5, 3, 3)]
    await world.offset(world.send(newer))
    numbers = [world.send(each) for each in late]
    assert [await world.offset(number) for number in numbers] == [1, 2]
    (found,) = await world.plane.reads.find_batches([FindBatches(P0, 0, 1 << 20)], max_rows=10)
    assert [(row.base_offset, row.last_offset, row.leader_epoch) for row in found.rows] == [(0, 0, 5), (1, 2, 5)]
    assert [(block.base_offset, block.last_offset) for block in world.readers.blocks] == [(0, 0), (1, 2)]
    in_memory = [read_header(buffer) for block in world.readers.blocks for buffer in block.batches]
    assert [header.leader_epoch for header in in_memory] == [5, 5, 5]


async def test_log_append_time_is_that_of_the_control_plane(tmp_path: Path) -> None:
    """The clock of the writing broker does not matter: here it is years behind."""
    async with open_world(tmp_path, time=HandSetClock(NOON_MS), clock=VirtualClock(1)) as world:
        one = batch(P0, timestamp_type=TimestampType.LOG_APPEND_TIME)
        assert await world.result(world.send(one)) == DisklessAppended(0, NOON_MS, 0)
        assert read_header(one.buffer).max_timestamp == NOON_MS
        (block,) = world.readers.blocks
        (found,) = await world.plane.reads.find_batches([FindBatches(P0, 0, 1 << 20)], max_rows=10)
        assert (block.max_timestamp, found.rows[0].max_timestamp) == (NOON_MS, NOON_MS)


async def test_readers_know_of_a_batch_before_its_producer_is_answered(world: World) -> None:
    seen: list[int] = []
    world.writer.append(batch(P0, records=4), lambda _: seen.append(len(world.readers.blocks)))
    await until(lambda: bool(seen))
    assert seen == [1]
    (block,) = world.readers.blocks
    assert (block.partition, block.base_offset, block.last_offset) == (P0, 0, 3)


async def test_an_object_still_verifies_after_its_batches_got_offsets_and_times_in_memory(world: World) -> None:
    one = batch(P0, timestamp_type=TimestampType.LOG_APPEND_TIME, leader_epoch=3)
    before = bytes(one.buffer)
    result = await world.result(world.send(one))
    assert isinstance(result, DisklessAppended)
    assert read_header(one.buffer).max_timestamp == result.log_append_time_ms > 0
    assert read_header(one.buffer).leader_epoch == 3
    (key,) = await world.store.keys()
    verify(await world.store.get(key))
    assert await world.stored(P0) == [(0, before)]


async def test_an_idle_writer_makes_no_object_and_asks_for_nothing(world: World) -> None:
    await world.offset(world.send(batch()))
    puts, commits = world.store.puts, len(world.held_commits.calls)
    await until(lambda: world.writer.status().files_committing == 0)
    assert (world.store.puts, len(world.held_commits.calls)) == (puts, commits) == (1, 1)


# Gathering


async def settled() -> None:
    """Let the event loop run what is ready."""
    for _ in range(10):
        await SystemClock().sleep(0)


async def test_while_an_object_is_on_its_way_batches_gather(world: World) -> None:
    world.store.is_held = True
    first = world.send(batch())
    await until(lambda: len(world.store.held) == 1)
    later = [world.send(batch()) for _ in range(10)]
    await until(lambda: world.writer.status().gathered_batches == 10)
    world.store.release_all()
    assert [await world.offset(number) for number in (first, *later)] == list(range(11))
    assert len(await world.store.keys()) == 2


async def test_what_is_worth_an_object_is_uploaded_beside_others_up_to_the_allowed_number(world: World) -> None:
    world.store.is_held = True
    numbers = []
    for _ in range(6):
        numbers.append(world.send(batch(value=b"x" * 2000)))
        await until(lambda: world.writer.status().gathered_batches == 0 or len(world.store.held) == 4)
    await until(lambda: len(world.store.held) == 4)
    assert world.writer.status().gathered_batches == 2
    world.store.release_all()
    assert [await world.offset(number) for number in numbers] == list(range(6))
    assert world.store.most_at_once == 4


async def test_a_full_buffer_is_closed_even_if_it_has_to_wait_for_its_upload(tmp_path: Path) -> None:
    async with open_world(tmp_path, limits=replace(LIMITS, parallel_uploads=1)) as world:
        world.store.is_held = True
        numbers = [world.send(batch(value=b"x" * 3000)) for _ in range(7)]
        await until(lambda: len(world.store.held) == 1)
        status = world.writer.status()
        assert (status.uploads_running, status.uploads_waiting, status.gathered_batches) == (1, 2, 1)
        world.store.release_all()
        assert [await world.offset(number) for number in numbers] == list(range(7))
        assert {len(await world.store.get(key)) < 8000 for key in await world.store.keys()} == {True}


async def test_a_batch_larger_than_an_object_may_be_gets_one_of_its_own(world: World) -> None:
    numbers = [world.send(batch(value=b"x" * size)) for size in (10, 9000, 10)]
    assert [await world.offset(number) for number in numbers] == [0, 1, 2]
    assert len(await world.store.keys()) == 3


async def test_after_the_commit_interval_batches_wait_no_longer_for_the_object_before(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with open_world(tmp_path, clock=clock) as world:
        world.store.is_held = True
        world.send(batch())
        await until(lambda: len(world.store.held) == 1)
        world.send(batch())
        await clock.advance(0.24)
        assert len(world.store.held) == 1
        await clock.advance(0.01)
        await until(lambda: len(world.store.held) == 2)
        # And the timer serves the next ones as well.
        world.send(batch())
        await clock.advance(0.25)
        await until(lambda: len(world.store.held) == 3)


@pytest.mark.parametrize(("producer", "objects"), [(4, 2), (-1, 1)], ids=["idempotent", "plain"])
async def test_batches_do_not_wait_for_others_if_no_producer_can_send_more(
    tmp_path: Path, producer: int, objects: int
) -> None:
    """A client with idempotence has five requests on their way, then it waits for an answer. No clock moves here."""
    async with open_world(tmp_path, clock=VirtualClock()) as world:
        world.store.is_held = True
        sent = [batch(producer=producer, sequence=i if producer >= 0 else -1, value=b"x" * 150) for i in range(5)]
        numbers = [world.send(sent[0])]
        await until(lambda: len(world.store.held) == 1)
        for number, one in enumerate(sent[1:], start=1):
            assert len(world.store.held) == 1
            numbers.append(world.send(one))
            await until(lambda gathered=number: world.writer.status().gathered_batches in (0, gathered))  # type: ignore[misc]
            await settled()
        assert len(world.store.held) == objects
        assert world.writer.status().gathered_batches == (0 if objects == 2 else 4)
        world.store.release_all()
        assert [await world.offset(number) for number in numbers] == list(range(5))


async def test_few_bytes_wait_even_if_no_producer_can_send_more(tmp_path: Path) -> None:
    """Otherwise many producers of small batches would make an object of each."""
    async with open_world(tmp_path, clock=VirtualClock()) as world:
        world.store.is_held = True
        world.send(batch(producer=4, sequence=0))
        await until(lambda: len(world.store.held) == 1)
        numbers = [world.send(batch(producer=4, sequence=i)) for i in range(1, 5)]
        await settled()
        assert (len(world.store.held), world.writer.status().gathered_batches) == (1, 4)
        world.store.release_all()
        assert [await world.offset(number) for number in numbers] == [1, 2, 3, 4]


async def test_what_lingers_is_written_when_the_broker_stops(tmp_path: Path) -> None:
    """Its producers get their answers before their connections are closed. No clock moves here."""
    async with open_world(tmp_path, limits=replace(LIMITS, linger=60.0), clock=VirtualClock()) as world:
        numbers = [world.send(batch())]
        await settled()
        assert world.writer.status().gathered_batches == 1
        world.writer.hurry()
        assert await world.offset(numbers[0]) == 0
        assert await world.offset(world.send(batch())) == 1, "what was received meanwhile does not linger"


# Order


async def test_five_requests_of_one_idempotent_producer_are_on_their_way_together(world: World) -> None:
    world.store.is_held = True
    sent = [batch(P0, records=10, producer=4, sequence=10 * i, value=b"x" * 250) for i in range(4)]
    numbers = []
    for i, one in enumerate(sent):
        numbers.append(world.send(one))
        await until(lambda expected=i + 1: len(world.store.held) == expected)  # type: ignore[misc]
    while world.store.held:
        world.store.release(-1)  # the newest upload ends first
    assert [await world.offset(number) for number in numbers] == [0, 10, 20, 30]
    assert world.answered == numbers
    assert sum(len(call) for call in world.held_commits.calls) == 4


async def test_everything_uploaded_that_is_next_in_order_is_committed_in_one_call(world: World) -> None:
    world.held_commits.gate.clear()
    numbers = [world.send(batch(value=b"x" * 2500))]
    await until(lambda: len(world.held_commits.calls) == 1)
    for _ in range(3):
        numbers.append(world.send(batch(value=b"x" * 2500)))
        await until(lambda: world.writer.status().files_waiting_for_commit == len(numbers) - 1)
    world.held_commits.gate.set()
    assert [await world.offset(number) for number in numbers] == [0, 1, 2, 3]
    assert [len(call) for call in world.held_commits.calls] == [1, 3]


async def test_an_uploaded_object_waits_for_the_one_before_it(world: World) -> None:
    world.store.is_held = True
    numbers = []
    for expected in (1, 2):
        numbers.append(world.send(batch(value=b"x" * 2500)))
        await until(lambda e=expected: len(world.store.held) == e)  # type: ignore[misc]
    world.store.release(1)
    await until(lambda: world.writer.status().files_waiting_for_commit == 1)
    assert world.held_commits.calls == []
    world.store.release_all()
    assert [await world.offset(number) for number in numbers] == [0, 1]


# Failed uploads


async def test_a_failed_upload_fails_its_own_batches_and_nothing_of_it_is_visible(world: World) -> None:
    world.store.is_held = True
    numbers = []
    for expected in (1, 2, 3):
        numbers.append(world.send(batch(value=b"x" * 2500)))
        await until(lambda e=expected: len(world.store.held) == e)  # type: ignore[misc]
    world.store.release(1, ObjectStoreError("refused"))
    world.store.release_all()
    assert isinstance(await world.error(numbers[1]), KafkaStorageError)
    assert [await world.offset(numbers[0]), await world.offset(numbers[2])] == [0, 1]
    assert await world.high_watermark(P0) == 2
    await until(lambda: len(world.store.deleted) == 1)
    assert world.writer.status().totals.uploads_failed == 1
    assert len(await world.store.keys()) == 2


async def test_an_upload_is_tried_again_under_another_key_and_the_first_object_is_deleted(world: World) -> None:
    world.store.failures.extend([ObjectStoreUnavailable("busy"), ObjectStoreUnavailable("busy")])
    assert await world.offset(world.send(batch())) == 0
    await until(lambda: len(world.store.deleted) == 2)
    (key,) = await world.store.keys()
    assert key not in world.store.deleted
    assert world.store.puts == 3


async def test_an_upload_is_given_up_after_its_attempts(world: World) -> None:
    world.store.failures.extend([ObjectStoreUnavailable("busy")] * 3)
    error = await world.error(world.send(batch()))
    assert isinstance(error, KafkaStorageError)
    assert "busy" in str(error)
    assert world.store.puts == 3
    assert await world.offset(world.send(batch())) == 0


async def test_an_upload_whose_answer_was_lost_is_there_once_under_the_second_key(world: World) -> None:
    world.faults.lose_answer("put")
    one = batch()
    before = bytes(one.buffer)
    assert await world.offset(world.send(one)) == 0
    await until(lambda: len(world.store.deleted) == 1)
    await world.writer.close(within=10)
    assert await world.stored(P0) == [(0, before)]
    assert len(await world.store.keys()) == 1


async def test_an_upload_whose_last_answer_was_lost_is_not_visible_and_its_objects_go(world: World) -> None:
    world.faults.lose_answer("put", times=3)
    assert isinstance(await world.error(world.send(batch())), KafkaStorageError)
    await world.writer.close(within=10)
    assert await world.high_watermark(P0) == 0
    assert await world.store.keys() == set()


async def test_an_object_that_cannot_be_deleted_harms_nobody_and_is_left_to_the_search_for_orphans(
    world: World,
) -> None:
    world.faults.lose_answer("put")
    world.faults.fail("delete")
    assert await world.offset(world.send(batch())) == 0
    await world.writer.close(within=10)
    (committed,) = world.held_commits.calls[0]
    assert await world.store.keys() > {committed}


async def test_uploads_that_take_long_run_side_by_side(world: World) -> None:
    gate = world.faults.block("put")
    numbers = []
    for running in range(1, 5):
        numbers.append(world.send(batch(value=b"x" * 2500)))
        await until(lambda expected=running: world.writer.status().uploads_running == expected)  # type: ignore[misc]
    gate.release()
    assert [await world.offset(number) for number in numbers] == [0, 1, 2, 3]


async def test_an_unexpected_error_of_an_upload_fails_its_batches_and_the_writer_goes_on(world: World) -> None:
    world.store.failures.append(RuntimeError("a defect"))
    assert isinstance(await world.error(world.send(batch())), KafkaStorageError)
    assert await world.offset(world.send(batch())) == 0


async def test_what_an_unknown_producer_sent_behind_a_lost_batch_is_refused_and_it_can_begin_again(
    world: World,
) -> None:
    """The control plane alone would take the second batch, and the first could never be written any more."""
    world.store.is_held = True
    numbers = []
    for i in range(3):
        numbers.append(world.send(batch(P0, producer=4, sequence=i, value=b"x" * 2500)))
        await until(lambda e=i + 1: len(world.store.held) == e)  # type: ignore[misc]
    bystander = world.send(batch(P1, producer=4, sequence=7))
    world.store.release(0, ObjectStoreError("refused"))
    world.store.release_all()
    assert isinstance(await world.error(numbers[0]), KafkaStorageError)
    assert isinstance(await world.error(numbers[1]), OutOfOrderSequence)
    assert isinstance(await world.error(numbers[2]), OutOfOrderSequence)
    assert await world.offset(bystander) == 0
    assert await world.high_watermark(P0) == 0
    again = [world.send(batch(P0, producer=4, sequence=i)) for i in range(3)]
    assert [await world.offset(number) for number in again] == [0, 1, 2]


# Failed commits


async def test_a_commit_whose_answer_was_lost_is_asked_for_again_and_makes_no_second_copy(world: World) -> None:
    world.held_commits.lost_answers.extend([StoreUnavailable("gone"), StoreUnavailable("gone")])
    assert await world.offset(world.send(batch(P0, records=2))) == 0
    assert await world.high_watermark(P0) == 2
    assert len({tuple(call) for call in world.held_commits.calls}) == 1
    assert len(world.held_commits.calls) == 3


async def test_a_commit_that_gave_way_to_another_is_tried_again(world: World) -> None:
    world.held_commits.failures.extend([TransactionConflict("deadlock")] * 3)
    assert await world.offset(world.send(batch())) == 0
    assert len(world.held_commits.calls) == 4


async def test_when_patience_ends_an_unknown_outcome_is_a_timeout_and_the_object_stays(tmp_path: Path) -> None:
    async with open_world(tmp_path, limits=replace(LIMITS, patience=0.0)) as world:
        world.held_commits.lost_answers.append(StoreUnavailable("gone"))
        assert isinstance(await world.error(world.send(batch())), RequestTimedOut)
        assert len(await world.store.keys()) == 1
        assert world.store.deleted == []
        # It had happened. The next one goes on behind it.
        assert await world.offset(world.send(batch())) == 1
        assert world.writer.status().totals.commits_failed == 1


async def test_a_process_that_has_slept_does_not_commit_what_may_be_deleted_meanwhile(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with open_world(tmp_path, clock=clock) as world:
        world.held_commits.gate.clear()
        world.held_commits.failures.append(TransactionConflict("deadlock"))
        number = world.send(batch())
        await until(lambda: bool(world.held_commits.calls))
        waiting = world.send(batch())
        await until(lambda: world.writer.status().files_waiting_for_commit == 1)
        clock.move(600)
        world.held_commits.gate.set()
        assert isinstance(await world.error(number), RequestTimedOut)
        assert isinstance(await world.error(waiting), KafkaStorageError)
        assert len(world.held_commits.calls) == 1
        assert await world.high_watermark(P0) == 0


async def test_a_commit_that_certainly_did_not_happen_leaves_no_object(world: World) -> None:
    world.held_commits.failures.append(IntegrityViolation("a defect"))
    assert isinstance(await world.error(world.send(batch())), KafkaStorageError)
    await until(lambda: len(world.store.deleted) == 1)
    await world.writer.close(within=10)
    assert await world.store.keys() == set()


async def test_a_defect_behind_a_commit_answers_its_producers_and_the_writer_goes_on(world: World) -> None:
    world.held_commits.failures.append(RuntimeError("a defect"))
    assert isinstance(await world.error(world.send(batch())), RequestTimedOut)
    assert await world.offset(world.send(batch())) == 0


async def test_a_reader_that_fails_does_not_hide_a_commit_from_its_producer(world: World) -> None:
    world.readers.failure = RuntimeError("a defect")
    assert await world.offset(world.send(batch())) == 0


async def test_an_answer_that_cannot_be_delivered_does_not_keep_the_others(world: World) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a defect")

    world.writer.append(batch(), fail)
    assert await world.offset(world.send(batch())) == 1


async def test_an_unknown_partition_fails_only_its_own_batches(world: World) -> None:
    unknown, known = world.send(batch(UNKNOWN)), world.send(batch(P0))
    assert isinstance(await world.error(unknown), NotLeaderOrFollower)
    assert await world.offset(known) == 0
    assert world.writer.status().totals.batches_refused == 1


async def test_an_object_taken_for_an_orphan_is_refused_with_a_retriable_error(world: World) -> None:
    world.held_commits.gate.clear()
    number = world.send(batch())
    await until(lambda: bool(world.held_commits.calls))
    taken = await world.plane.files.take_orphans(world.held_commits.calls[0], broker_id=1)
    assert list(taken) == world.held_commits.calls[0]
    world.held_commits.gate.set()
    assert isinstance(await world.error(number), KafkaStorageError)
    assert await world.offset(world.send(batch())) == 0


async def test_what_the_control_plane_refuses_reaches_the_producer(world: World) -> None:
    assert await world.offset(world.send(batch(P0, producer=4, sequence=0))) == 0
    assert isinstance(await world.error(world.send(batch(P0, producer=4, sequence=5))), OutOfOrderSequence)
    assert await world.offset(world.send(batch(P0, producer=4, sequence=0))) == 0
    assert await world.high_watermark(P0) == 1


# Bounds


async def test_beyond_its_limit_the_writer_refuses_at_once_and_takes_more_when_there_is_room(tmp_path: Path) -> None:
    async with open_world(tmp_path, limits=replace(LIMITS, max_pending_bytes=9000)) as world:
        world.store.is_held = True
        taken = [world.send(batch(value=b"x" * 4000)) for _ in range(2)]
        refused = world.send(batch(value=b"x" * 4000))
        assert isinstance(await world.error(refused), RequestTimedOut)
        # What would fit is refused as well: it may stand behind the refused one.
        assert isinstance(await world.error(world.send(batch())), RequestTimedOut)
        assert world.writer.status().totals.batches_over_limit == 2
        world.store.release_all()
        assert [await world.offset(number) for number in taken] == [0, 1]
        assert await world.offset(world.send(batch(value=b"x" * 4000))) == 2


async def test_a_batch_above_the_limit_is_taken_when_nothing_else_waits(tmp_path: Path) -> None:
    async with open_world(tmp_path, limits=replace(LIMITS, max_pending_bytes=1000)) as world:
        assert await world.offset(world.send(batch(value=b"x" * 2000))) == 0


# The end


async def test_closing_finishes_what_was_taken_and_refuses_what_comes_later(world: World) -> None:
    world.store.is_held = True
    numbers = [world.send(batch())]
    await until(lambda: len(world.store.held) == 1)
    numbers.append(world.send(batch()))
    world.store.release_all()
    await world.writer.close(within=10)
    assert [await world.offset(number) for number in numbers] == [0, 1]
    late = await world.error(world.send(batch()))
    assert isinstance(late, KafkaStorageError)
    assert late.retriable


async def test_closing_ends_in_time_and_answers_everybody(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with open_world(tmp_path, clock=clock) as world:
        world.held_commits.gate.clear()
        committing = world.send(batch(value=b"x" * 2500))
        await until(lambda: bool(world.held_commits.calls))
        world.store.is_held = True
        uploading = world.send(batch(value=b"x" * 2500))
        await until(lambda: len(world.store.held) == 1)
        gathering = world.send(batch())
        closing = asyncio.create_task(world.writer.close(within=3))
        await clock.advance(2.9)
        assert not closing.done()
        await clock.advance(0.1)
        await closing
        assert isinstance(await world.error(committing), RequestTimedOut)
        assert isinstance(await world.error(uploading), KafkaStorageError)
        assert isinstance(await world.error(gathering), KafkaStorageError)
        assert world.writer.status().pending_bytes == 0
        assert await world.high_watermark(P0) == 0


async def test_closing_twice_is_harmless(world: World) -> None:
    await world.writer.close(within=1)
    await world.writer.close(within=1)


# Looking inside


async def test_status_shows_where_everything_is(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with open_world(tmp_path, clock=clock) as world:
        world.store.is_held = True
        one = batch(value=b"x" * 2500)
        number = world.send(one)
        await until(lambda: len(world.store.held) == 1)
        world.send(batch())
        await clock.settle()
        clock.move(0.1)
        status = world.writer.status()
        assert status.uploads_running == 1
        assert status.gathered_batches == 1
        assert status.pending_bytes == len(one.buffer) + status.gathered_bytes
        assert status.oldest_pending_seconds == pytest.approx(0.1)
        world.store.release_all()
        await world.result(number)
        await until(lambda: world.writer.status().pending_bytes == 0)
        totals = world.writer.status().totals
        assert (totals.files, totals.batches, totals.batches_refused, totals.batches_failed) == (2, 2, 0, 0)
        assert totals.bytes == sum([len(await world.store.get(key)) for key in await world.store.keys()])
