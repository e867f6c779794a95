"""A partition: who may append, when an append is done, and who is woken."""

from __future__ import annotations

import asyncio
import os

import pytest

from strandline.errors import (
    FencedLeaderEpoch,
    InvalidRecord,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequence,
    PolicyViolation,
    RequestTimedOut,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.log import AppendOrigin
from strandline.reads import FetchIsolation
from strandline.records.batch import iter_headers
from strandline.records.record import read_records
from strandline.replication import Append, Appended, Partition
from strandline.replication.leader import LARGE_APPEND
from tests.replication.conftest import Fixture, batch, image

ALL = -1


class Waiter:
    """Collects what an append ends with."""

    def __init__(self) -> None:
        self.outcome: asyncio.Future[StrandlineError | None] = asyncio.get_running_loop().create_future()

    def __call__(self, error: StrandlineError | None) -> None:
        self.outcome.set_result(error)


class Bell:
    """Counts notifications."""

    def __init__(self) -> None:
        self.rings = 0

    def notify(self) -> None:
        self.rings += 1


def append(
    partition: Partition, records: memoryview, *, acks: int = ALL, is_borrowed: bool = False
) -> tuple[Appended, Waiter]:
    waiter = Waiter()
    wanted = Append(records, acks=acks, origin=AppendOrigin.CLIENT, done=waiter, is_borrowed=is_borrowed)
    return partition.append(wanted), waiter


def values_in(partition: Partition) -> list[bytes]:
    """Everything a consumer can read."""
    found: list[bytes] = []
    offset = partition.log.log_start_offset
    while True:
        result = partition.read(offset, 1 << 26, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)
        if result.records is None:
            return found
        data = result.records.read()
        for position, header in iter_headers(data):
            for record in read_records(data[position : position + header.size]):
                assert record.value is not None
                found.append(record.value.rstrip(b"."))
            offset = header.next_offset


async def test_only_the_leader_appends(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(leader=2, replicas=(1, 2), isr=(1, 2)))
    with pytest.raises(NotLeaderOrFollower):
        append(partition, batch(b"a"))
    assert partition.log.log_end_offset == 0


async def test_small_appends_are_done_at_once_and_visible(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image())
    for number, value in enumerate((b"a", b"b", b"c")):
        appended, _ = append(partition, batch(value))
        assert appended.is_done
        assert appended.info.first_offset == number
    assert values_in(partition) == [b"a", b"b", b"c"]


async def test_large_appends_leave_the_loop_and_small_ones_queue_behind_them(fixture: Fixture) -> None:
    partition = fixture.partition(max_message_bytes="2000000")
    partition.follow(image())
    bell = Bell()
    partition.watch(bell)
    appends = [
        append(partition, batch(b"large", size=LARGE_APPEND)),
        append(partition, batch(b"small")),
        append(partition, batch(b"large2", size=LARGE_APPEND)),
    ]
    assert [appended.is_done for appended, _ in appends] == [False, False, False]
    assert [appended.info.first_offset for appended, _ in appends] == [0, 1, 2]
    assert partition.log.log_end_offset == 0
    assert bell.rings == 0
    assert [await waiter.outcome for _, waiter in appends] == [None, None, None]
    assert values_in(partition) == [b"large", b"small", b"large2"]
    assert bell.rings == 3
    appended, _ = append(partition, batch(b"inline again"))
    assert appended.is_done


async def test_a_borrowed_buffer_is_copied_if_it_has_to_wait(fixture: Fixture) -> None:
    partition = fixture.partition(max_message_bytes="2000000")
    partition.follow(image())
    _, first = append(partition, batch(b"large", size=LARGE_APPEND))
    borrowed = bytearray(batch(b"borrowed"))
    _, second = append(partition, memoryview(borrowed), is_borrowed=True)
    borrowed[:] = b"\xff" * len(borrowed)
    assert (await first.outcome, await second.outcome) == (None, None)
    assert values_in(partition) == [b"large", b"borrowed"]


async def test_a_duplicate_of_an_append_under_way_waits_for_it(fixture: Fixture) -> None:
    partition = fixture.partition(max_message_bytes="2000000")
    partition.follow(image())
    records = batch(b"once", producer_id=5, sequence=0, size=LARGE_APPEND)
    again = memoryview(bytearray(records))
    (first, first_waiter), (second, second_waiter) = append(partition, records), append(partition, again)
    assert not first.is_done
    assert not second.is_done
    assert second.info.is_duplicate
    assert second.info.first_offset == first.info.first_offset
    assert (await first_waiter.outcome, await second_waiter.outcome) == (None, None)
    assert values_in(partition) == [b"once"]


async def test_a_refused_batch_changes_nothing(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image())
    append(partition, batch(b"a", producer_id=5, sequence=0))
    with pytest.raises(OutOfOrderSequence):
        append(partition, batch(b"b", producer_id=5, sequence=7))
    with pytest.raises(InvalidRecord):
        append(partition, memoryview(bytearray(61)))
    assert partition.log.log_end_offset == 1
    appended, _ = append(partition, batch(b"c", producer_id=5, sequence=1))
    assert appended.info.first_offset == 1


async def test_flush_messages_waits_for_the_disk(fixture: Fixture) -> None:
    partition = fixture.partition(flush_messages="1")
    partition.follow(image())
    appended, waiter = append(partition, batch(b"a"))
    assert not appended.is_done
    assert await waiter.outcome is None
    assert partition.log.flusher.recovery_point == 1


async def test_acks_all_needs_enough_replicas_in_sync(fixture: Fixture) -> None:
    partition = fixture.partition(min_insync_replicas="2")
    partition.follow(image(replicas=(1, 2), isr=(1,)))
    with pytest.raises(NotEnoughReplicas):
        append(partition, batch(b"a"))
    appended, _ = append(partition, batch(b"a"), acks=1)
    assert appended.is_done
    assert partition.log.log_end_offset == 1
    assert partition.log.high_watermark == 0, "what too few replicas hold stays invisible"
    partition.follow(image(replicas=(1,), isr=(1,), version=1))
    assert partition.log.high_watermark == 1


async def test_readers_look_again_when_metadata_makes_records_visible_or_begins_an_epoch(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(replicas=(1, 2), isr=(1, 2)))
    append(partition, batch(b"a"), acks=1)
    bell = Bell()
    partition.watch(bell)
    partition.follow(image(replicas=(1, 2), isr=(1,), version=1))
    assert (partition.log.high_watermark, bell.rings) == (1, 1)
    partition.follow(image(replicas=(1, 2), isr=(1,), epoch=1, version=2))
    assert bell.rings == 2


async def test_an_append_waits_for_replication_until_leadership_is_lost(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(replicas=(1, 2), isr=(1, 2)))
    appended, waiter = append(partition, batch(b"a"))
    assert not appended.is_done
    with pytest.raises(RequestTimedOut):
        await partition.append_and_wait(batch(b"b"), timeout_ms=1)
    partition.follow(image(leader=2, epoch=1, replicas=(1, 2), isr=(1, 2), version=1))
    assert isinstance(await waiter.outcome, NotLeaderOrFollower)


async def test_a_shrunk_isr_lets_waiting_appends_finish(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(replicas=(1, 2), isr=(1, 2)))
    _, waiter = append(partition, batch(b"a"))
    partition.follow(image(replicas=(1, 2), isr=(1,), version=1))
    assert await waiter.outcome is None
    assert values_in(partition) == [b"a"]


async def test_old_metadata_is_ignored(fixture: Fixture) -> None:
    partition = fixture.partition()
    assert partition.follow(image(epoch=3, version=5))
    assert not partition.follow(image(leader=2, epoch=2, version=4))
    assert partition.is_leader


async def test_leader_epochs_fence_readers(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(epoch=3))
    partition.check_leader(3)
    partition.check_leader(-1)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_leader(2)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_leader(4)


async def test_each_epoch_begins_where_its_leader_found_the_log(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(epoch=0))
    append(partition, batch(b"a", b"b"))
    partition.follow(image(epoch=4, version=1))
    append(partition, batch(b"c"))
    assert partition.end_offset_for_epoch(0) == (0, 2)
    assert partition.end_offset_for_epoch(4) == (4, 3)


async def test_delete_records_moves_the_start_within_what_is_visible(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image())
    append(partition, batch(b"a", b"b", b"c"))
    bell = Bell()
    partition.watch(bell)
    assert partition.delete_records(2) == 2
    assert bell.rings == 1
    with pytest.raises(OffsetOutOfRange):
        partition.delete_records(4)
    with pytest.raises(OffsetOutOfRange):
        partition.delete_records(-2)
    assert partition.delete_records(-1) == 3
    assert values_in(partition) == []


async def test_records_of_a_compacted_topic_cannot_be_deleted(fixture: Fixture) -> None:
    partition = fixture.partition(cleanup_policy="compact")
    partition.follow(image())
    with pytest.raises(PolicyViolation):
        partition.delete_records(0)


@pytest.mark.parametrize("size", [0, LARGE_APPEND])
async def test_a_failed_write_takes_the_log_offline_and_tells_everybody(fixture: Fixture, size: int) -> None:
    partition = fixture.partition(max_message_bytes="2000000")
    partition.follow(image())
    append(partition, batch(b"a"))
    # A real failure: the descriptor under the log becomes one that cannot be written.
    read_only = os.open(partition.log.segments.active.file.path, os.O_RDONLY)
    os.dup2(read_only, partition.log.segments.active.file.fileno())
    os.close(read_only)
    if size:
        _, waiter = append(partition, batch(b"b", size=size))
        assert isinstance(await waiter.outcome, KafkaStorageError)
    else:
        with pytest.raises(KafkaStorageError):
            append(partition, batch(b"b"))
    assert partition.log.is_offline
    with pytest.raises(KafkaStorageError):
        append(partition, batch(b"c"))
