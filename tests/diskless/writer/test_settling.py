"""What follows from the answers of the control plane."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.controlplane import CommittedBatch, Refusal
from strandline.diskless.values import DisklessAppend, DisklessAppended
from strandline.diskless.wal import pack
from strandline.diskless.writer.gathering import GatheredFile
from strandline.diskless.writer.settling import Claim, Settlement
from strandline.errors import InvalidProducerEpoch, KafkaStorageError, NotLeaderOrFollower, OutOfOrderSequence
from strandline.records import TimestampType, crc_matches, read_header
from tests.diskless.batches import NOON_MS
from tests.diskless.writer.writing import P0, P1, batch


def claimed(batches: Sequence[DisklessAppend]) -> Claim:
    file = GatheredFile()
    for each in batches:
        file.add(each, lambda _: None)
    packed = pack(batches, broker_id=1, cluster_id="c", created_ms=NOON_MS)
    file.key, file.size, file.placed = "wal/2023111512/1-x", packed.size, packed.placed
    return Claim(file, file.placed)


def settled(claim: Claim, answers: Sequence[CommittedBatch]) -> Settlement:
    settlement = Settlement()
    settlement.settle(claim, answers)
    return settlement


def at(offset: int, *, time_ms: int = -1, is_duplicate: bool = False, epoch: int = 0) -> CommittedBatch:
    return CommittedBatch(None, offset, time_ms, 5, is_duplicate, leader_epoch=epoch)


def test_neighbours_of_one_partition_are_one_block_with_their_offsets_in_place() -> None:
    batches = [batch(P1, records=2), batch(P0, records=3, leader_epoch=4), batch(P1, records=1)]
    claim = claimed(batches)
    settlement = settled(claim, [at(10, epoch=4), at(20), at(22)])
    assert [(block.partition, block.base_offset, block.last_offset) for block in settlement.blocks] == [
        (P0, 10, 12),
        (P1, 20, 22),
    ]
    assert settlement.blocks[1].batches == (batches[0].buffer, batches[2].buffer)
    assert settlement.blocks[1].max_timestamp == NOON_MS + 1
    assert settlement.log_start_offsets == [5, 5]
    assert [read_header(each.buffer).base_offset for each in batches] == [20, 10, 22]
    assert read_header(batches[1].buffer).leader_epoch == 4
    assert claim.results == [DisklessAppended(10, -1, 5), DisklessAppended(20, -1, 5), DisklessAppended(22, -1, 5)]


def test_what_is_sent_to_readers_is_what_was_uploaded_and_not_a_copy() -> None:
    one = batch(P0)
    settlement = settled(claimed([one]), [at(0)])
    assert settlement.blocks[0].batches[0] is one.buffer


def test_log_append_time_is_that_of_the_commit_and_the_checksum_fits() -> None:
    one = batch(P0, timestamp_type=TimestampType.LOG_APPEND_TIME)
    claim = claimed([one])
    settlement = settled(claim, [at(7, time_ms=NOON_MS + 999)])
    header = read_header(one.buffer)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, NOON_MS + 999)
    assert crc_matches(one.buffer, 0, header)
    assert settlement.blocks[0].max_timestamp == NOON_MS + 999
    assert claim.results == [DisklessAppended(7, NOON_MS + 999, 5)]


def test_a_duplicate_is_answered_with_its_first_offset_and_is_no_news_for_readers() -> None:
    batches = [batch(P0, records=2), batch(P0), batch(P0)]
    claim = claimed(batches)
    settlement = settled(claim, [at(10), at(3, is_duplicate=True), at(12)])
    assert [(block.base_offset, block.last_offset) for block in settlement.blocks] == [(10, 11), (12, 12)]
    assert claim.results[1] == DisklessAppended(3, -1, 5)
    assert read_header(batches[1].buffer).base_offset == 0


def test_another_epoch_or_kind_of_timestamp_begins_another_block() -> None:
    batches = [
        batch(P0),
        batch(P0, leader_epoch=1),
        batch(P0, leader_epoch=1, timestamp_type=TimestampType.LOG_APPEND_TIME),
    ]
    settlement = settled(claimed(batches), [at(0), at(1), at(2, time_ms=NOON_MS)])
    assert [block.base_offset for block in settlement.blocks] == [0, 1, 2]


def test_each_refusal_has_the_error_that_clients_understand() -> None:
    refusals = [
        (Refusal.UNKNOWN_LOG, NotLeaderOrFollower),
        (Refusal.OUT_OF_ORDER_SEQUENCE, OutOfOrderSequence),
        (Refusal.INVALID_PRODUCER_EPOCH, InvalidProducerEpoch),
        (Refusal.STALE_FILE, KafkaStorageError),
        (Refusal.OFFSET_OUT_OF_RANGE, KafkaStorageError),
    ]
    batches = [batch(P0) for _ in refusals]
    claim = claimed(batches)
    settlement = settled(claim, [CommittedBatch(refusal) for refusal, _ in refusals])
    assert [type(result) for result in claim.results] == [error for _, error in refusals]
    assert settlement.blocks == []
    assert claim.refused == len(refusals)
    assert claim.lost == [batches[0], batches[3]]


def test_the_sentence_of_the_control_plane_reaches_the_client() -> None:
    claim = claimed([batch(P0)])
    settled(claim, [CommittedBatch(Refusal.OUT_OF_ORDER_SEQUENCE, message="Expected 7.")])
    assert str(claim.results[0]) == "Expected 7."


def test_the_control_plane_is_told_where_each_batch_lies_and_who_sent_it() -> None:
    batches = [batch(P1, records=4, producer=9, epoch=2, sequence=30, leader_epoch=6), batch(P0)]
    file = claimed(batches).to_commit(7)
    assert (file.object_key, file.broker_id) == ("wal/2023111512/1-x", 7)
    first, second = file.batches
    assert (first.partition, first.byte_offset, first.byte_size) == (P0, 0, len(batches[1].buffer))
    assert (second.partition, second.byte_offset, second.byte_size) == (P1, first.byte_size, len(batches[0].buffer))
    assert (second.record_count, second.max_timestamp, second.leader_epoch) == (4, NOON_MS + 3, 6)
    assert (second.producer_id, second.producer_epoch, second.base_sequence) == (9, 2, 30)
