"""Appending what a leader has sent: begun at once, written in any thread, finished in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import CorruptMessage, InvalidRecord, KafkaStorageError
from tests.log.harness import LogHarness, batch, headers_in, offsets_in

EPOCH = 3


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[LogHarness]:
    made = LogHarness(tmp_path / "logs")
    made.create()
    yield made
    made.log.abandon()


def small_segments(tmp_path: Path, **config: int) -> LogHarness:
    made = LogHarness(tmp_path / "logs", config=TopicConfig(**config))  # type: ignore[arg-type]
    made.create()
    return made


def sent(*bases: int, epoch: int = EPOCH, **how: object) -> memoryview:
    """Batches of one record each, as a leader sends them."""
    return memoryview(b"".join(bytes(batch(base_offset=base, leader_epoch=epoch, **how)) for base in bases))  # type: ignore[arg-type]


def test_a_set_of_batches_is_one_write(harness: LogHarness) -> None:
    log = harness.log
    batches = log.begin_append_as_follower(sent(0, 1, 2))
    [pending] = batches.pending
    assert (batches.info.first_offset, batches.info.last_offset, batches.info.size) == (0, 2, len(sent(0, 1, 2)))
    assert (log.log_end_offset, log.reserved_end) == (0, 3), "readers see nothing before it is written"
    pending.write()
    log.finish_append(pending)
    assert log.log_end_offset == 3
    assert offsets_in(log) == [0, 1, 2]
    assert [header.base_offset for header in headers_in(log)] == [0, 1, 2], "each is found by its offset"
    for offset in range(3):
        records = log.read(offset, 1).records
        assert records is None or records.read()[7] == offset


def test_records_are_not_copied(harness: LogHarness) -> None:
    buffer = bytearray(sent(0))
    batches = harness.log.begin_append_as_follower(memoryview(buffer))
    stored = batches.pending[0]._buffer
    assert isinstance(stored, memoryview)
    assert stored.obj is buffer


def test_a_set_that_is_larger_than_a_segment_is_divided(tmp_path: Path) -> None:
    harness = small_segments(tmp_path, internal_segment_bytes=200)
    records = sent(0, 1, 2, 3, 4)
    batches = harness.log.begin_append_as_follower(records)
    assert len(batches.pending) > 1
    for pending in batches.pending:
        pending.write()
        harness.log.finish_append(pending)
    assert offsets_in(harness.log) == [0, 1, 2, 3, 4]
    assert b"".join(segment.file.read(0, segment.size) for segment in harness.log.segments) == bytes(records)


def test_a_batch_that_is_larger_than_a_segment_is_appended(tmp_path: Path) -> None:
    """Its leader may have larger ones."""
    harness = small_segments(tmp_path, internal_segment_bytes=200)
    harness.log.append_as_follower(sent(0))
    harness.log.append_as_follower(sent(1, value=b"." * 1000))
    harness.log.append_as_follower(sent(2))
    assert offsets_in(harness.log) == [0, 1, 2]


def test_flush_messages_is_followed(tmp_path: Path) -> None:
    harness = small_segments(tmp_path, flush_messages=3)
    log = harness.log
    assert not log.begin_append_as_follower(sent(0)).must_leave_loop
    log.appender.pending[0].write()
    log.finish_append(log.appender.pending[0])
    batches = log.begin_append_as_follower(sent(1, 2, 3))
    assert batches.must_leave_loop
    for pending in batches.pending:
        pending.write()
        log.finish_append(pending)
    assert log.flusher.recovery_point == 4


@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_comes_before_a_damaged_batch_is_appended(harness: LogHarness, at: int) -> None:
    parts = [bytearray(sent(base)) for base in range(3)]
    parts[at][-1] ^= 1
    batches = harness.log.begin_append_as_follower(memoryview(b"".join(parts)))
    assert isinstance(batches.error, CorruptMessage)
    assert str(at) in str(batches.error)
    assert harness.log.reserved_end == at


@pytest.mark.parametrize("bases", [(1, 0), (1, 1), (5, 3)])
def test_offsets_have_to_grow(harness: LogHarness, bases: tuple[int, int]) -> None:
    batches = harness.log.begin_append_as_follower(sent(*bases))
    assert isinstance(batches.error, InvalidRecord)
    assert harness.log.reserved_end == bases[0] + 1


def test_offsets_have_to_continue_what_is_still_being_written(harness: LogHarness) -> None:
    log = harness.log
    first = log.begin_append_as_follower(sent(0, 1))
    assert isinstance(log.begin_append_as_follower(sent(1)).error, InvalidRecord)
    second = log.begin_append_as_follower(sent(2))
    for pending in (*first.pending, *second.pending):
        pending.write()
        log.finish_append(pending)
    assert offsets_in(log) == [0, 1, 2]


def test_offsets_may_be_missing_where_the_leader_has_compacted(harness: LogHarness) -> None:
    harness.log.append_as_follower(sent(10, 25))
    assert offsets_in(harness.log) == [10, 25]
    assert harness.log.log_end_offset == 26


def test_it_stops_before_a_later_epoch(harness: LogHarness) -> None:
    records = memoryview(bytes(sent(0)) + bytes(sent(1, epoch=EPOCH + 1)))
    batches = harness.log.begin_append_as_follower(records, leader_epoch=EPOCH)
    assert batches.error is None
    assert harness.log.reserved_end == 1


def test_a_leader_appends_behind_what_it_has_followed(harness: LogHarness) -> None:
    log = harness.log
    [following] = log.begin_append_as_follower(sent(0)).pending
    leading = log.begin_append(batch(), leader_epoch=EPOCH + 1)
    for pending in (following, leading):
        pending.write()
        log.finish_append(pending)
    assert [(header.base_offset, header.leader_epoch) for header in headers_in(log)] == [(0, EPOCH), (1, EPOCH + 1)]
    assert log.epochs.entries == ((EPOCH, 0), (EPOCH + 1, 1))


def test_epochs_and_transactions_follow(harness: LogHarness, tmp_path: Path) -> None:
    leader = LogHarness(tmp_path / "leader")
    leader.create()
    leader.append(batch(2, producer_id=7, sequence=0, is_transactional=True), epoch=1)
    leader.append(batch(producer_id=8, sequence=0, is_transactional=True), epoch=2)
    leader.end_transaction(7, commits=False)
    data = leader.log.segments.active.file.read(0, leader.log.size)
    log = harness.log
    log.append_as_follower(memoryview(data))
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == leader.log.last_stable_offset == 2
    assert log.epochs.entries == leader.log.epochs.entries
    assert log.active_producers() == leader.log.active_producers()
    assert [*log.segments.active.txn_index] == [*leader.log.segments.active.txn_index]
    leader.log.abandon()


def test_nothing_is_appended_to_a_log_that_is_closed(harness: LogHarness) -> None:
    harness.log.abandon()
    with pytest.raises(KafkaStorageError):
        harness.log.begin_append_as_follower(sent(0))


def test_a_cut_is_told(harness: LogHarness) -> None:
    told: list[int] = []
    harness.env.on_truncated = lambda log, offset: told.append(offset)
    harness.log.append_as_follower(sent(0, 1, 2))
    harness.log.truncate_to(5)
    assert told == []
    harness.log.truncate_to(1)
    harness.log.truncate_fully_and_start_at(9)
    assert told == [1, 9]


def test_epochs_that_begin_at_the_end_are_forgotten_even_if_nothing_is_cut(harness: LogHarness) -> None:
    log = harness.log
    log.append_as_follower(sent(0, 1))
    log.assign_epoch(EPOCH + 4, 2)
    assert not log.truncate_to(2)
    assert [*log.epochs.entries] == [(EPOCH, 0)]
    log.append_as_follower(sent(2, epoch=EPOCH + 9))
    assert [*log.epochs.entries] == [(EPOCH, 0), (EPOCH + 9, 2)]
