"""WAL objects: what goes in comes out, and what was changed on the way is noticed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.diskless.values import DisklessAppend
from strandline.diskless.wal import DamagedObject, iter_batches, pack, parse_footer, verify
from strandline.diskless.wal.footer import encode_footer
from strandline.records import TimestampType, stamp
from tests.diskless.batches import NOON_MS, TOPIC_A, TOPIC_B, append, joined, packed
from tests.partitions import id_partition

DOCUMENT = Path(__file__).parents[3] / "docs" / "wal-format.md"

# Two values that are equal for each partition: callers may keep one, and need not.
partitions = st.sampled_from(
    [id_partition(topic, number) for topic in (TOPIC_A, TOPIC_B, UUID(int=5)) for number in (0, 1, 3) for _ in "12"]
)
appends = st.lists(
    st.builds(
        append,
        partitions,
        records=st.integers(1, 5),
        timestamp=st.integers(0, 2 * NOON_MS),
        leader_epoch=st.integers(0, 1),
        timestamp_type=st.sampled_from(TimestampType),
        value=st.binary(max_size=30),
    ),
    max_size=12,
)


@given(appends)
def test_what_was_packed_is_described_and_found_at_its_place(batches: list[DisklessAppend]) -> None:
    made = packed(batches)
    data = joined(made)
    assert made.size == len(data)
    assert sorted(index for index, _ in made.placed) == list(range(len(batches)))
    for index, position in made.placed:
        assert data[position:].startswith(batches[index].buffer)

    footer = verify(data)
    assert (footer.created_ms, footer.broker_id, footer.cluster_id) == (NOON_MS, 7, "a-cluster")
    assert footer.data_size + footer.size == len(data)
    assert sum(extent.batch_count for extent in footer.extents) == len(batches)
    for extent in footer.extents:
        inside = [batches[i] for i, position in made.placed if extent.byte_offset <= position < extent.byte_end]
        assert {batch.partition for batch in inside} == {id_partition(extent.topic_id, extent.partition)}
        assert {batch.leader_epoch for batch in inside} == {extent.leader_epoch}
        assert {batch.timestamp_type for batch in inside} == {extent.timestamp_type}
        assert extent.record_count == sum(batch.header.record_count for batch in inside)
        assert extent.min_timestamp == min(batch.header.base_timestamp for batch in inside)
        assert extent.max_timestamp == max(batch.header.max_timestamp for batch in inside)


@given(appends)
def test_batches_lie_by_topic_id_partition_and_arrival(batches: list[DisklessAppend]) -> None:
    order = [
        (batches[i].partition.topic_id.bytes, batches[i].partition.partition, i) for i, _ in packed(batches).placed
    ]
    assert order == sorted(order)


@given(appends.filter(bool), st.data())
def test_no_changed_byte_goes_unnoticed(batches: list[DisklessAppend], data: st.DataObject) -> None:
    changed = bytearray(joined(packed(batches)))
    position = data.draw(st.integers(0, len(changed) - 1))
    changed[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DamagedObject):
        verify(changed)


@given(appends.filter(bool), st.data())
def test_an_object_that_was_cut_or_grew_is_damaged(batches: list[DisklessAppend], data: st.DataObject) -> None:
    whole = joined(packed(batches))
    cut = data.draw(st.integers(1, len(whole)))
    with pytest.raises(DamagedObject):
        verify(whole[cut:])
    with pytest.raises(DamagedObject):
        verify(whole[:-cut])
    with pytest.raises(DamagedObject):
        verify(b"\0" * cut + whole)


def test_bytes_before_an_object_without_batches_are_damage() -> None:
    with pytest.raises(DamagedObject, match="its footer describes"):
        verify(b"\0" + joined(packed([])))


def test_packing_copies_no_records() -> None:
    batches = [append(id_partition(TOPIC_B, 0)), append(id_partition(TOPIC_A, 0))]
    parts = packed(batches).parts
    assert parts[0] is batches[1].buffer
    assert parts[1] is batches[0].buffer
    assert len(parts) == 3


def test_stamping_offsets_after_the_upload_does_not_touch_the_checksums_of_the_object() -> None:
    batch = append(id_partition(TOPIC_A, 0))
    made = packed([batch])
    uploaded = joined(made)
    stamp(batch.buffer, 0, 4711, 3)
    assert verify(uploaded).extents[0].record_count == 3


def test_a_new_leader_epoch_begins_a_new_extent_of_the_same_partition() -> None:
    place = id_partition(TOPIC_A, 0)
    batches = [append(place, leader_epoch=epoch) for epoch in (4, 4, 5)]
    extents = verify(joined(packed(batches))).extents
    assert [(extent.leader_epoch, extent.batch_count) for extent in extents] == [(4, 2), (5, 1)]
    assert all(before.byte_end == after.byte_offset for before, after in pairwise(extents))


def test_the_footer_is_found_at_the_end_of_whatever_comes_before_it() -> None:
    data = joined(packed([append(id_partition(TOPIC_A, 0))]))
    footer = parse_footer(data)
    assert parse_footer(data[-footer.size :]) == footer
    with pytest.raises(DamagedObject, match="only 30 are there"):
        parse_footer(data[-30:])


def test_a_later_version_is_named_and_not_guessed_at() -> None:
    data = bytearray(joined(packed([])))
    data[-7] = 2
    with pytest.raises(DamagedObject, match="version 2"):
        parse_footer(data)


def test_extents_that_contradict_each_other_are_refused_though_the_checksum_fits() -> None:
    extent = verify(joined(packed([append(id_partition(TOPIC_A, 0))]))).extents[0]
    footer = encode_footer([extent, extent], created_ms=1, broker_id=1, cluster_id="")
    with pytest.raises(DamagedObject, match="overlap"):
        parse_footer(footer)


def test_a_batch_that_reaches_beyond_its_extent_is_damage() -> None:
    batch = append(id_partition(TOPIC_A, 0))
    extent = verify(joined(packed([batch]))).extents[0]
    with pytest.raises(DamagedObject, match="beyond the end"):
        list(iter_batches(extent, batch.buffer[:-1]))


def test_the_bytes_are_those_of_the_document() -> None:
    """docs/wal-format.md gives this object as its example."""
    batch = append(id_partition(TOPIC_A, 2), records=1, value=b"")
    made = pack([batch], broker_id=7, cluster_id="c1", created_ms=NOON_MS)
    assert batch.header.size == 71
    example = DOCUMENT.read_text(encoding="utf-8").split("After byte 71:")[1].split("```")[1]
    assert joined(made)[71:] == bytes.fromhex(example)
