"""Stamping many batches at once does what checking and stamping them one by one does."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from strandline.records import Codec, Record, build_batch, crc_matches, read_header, stamp
from strandline.records.stamping import stamp_batches

batches = st.lists(
    st.builds(
        lambda count, size, codec: bytes(
            build_batch([Record(i, 1_700_000_000_000 + i, None, b"x" * size) for i in range(count)], codec=codec)
        ),
        st.integers(1, 5),
        st.integers(0, 200),
        st.sampled_from([Codec.NONE, Codec.LZ4]),
    ),
    min_size=1,
    max_size=6,
)


@given(batches=batches, before=st.binary(max_size=20), base_offset=st.integers(0, 1 << 60), epoch=st.integers(0, 99))
def test_all_batches_get_their_offsets(batches: list[bytes], before: bytes, base_offset: int, epoch: int) -> None:
    buffer, expected = bytearray(before + b"".join(batches) + b"rest"), bytearray(before)
    offset, last_offsets, ends = base_offset, array("q"), array("q")
    wanted: list[tuple[int, int]] = []
    for batch in batches:
        one = bytearray(batch)
        stamp(one, 0, offset, epoch)
        offset += read_header(batch).last_offset_delta + 1
        expected += one
        wanted.append((offset - 1, len(expected)))
    position, reached = stamp_batches(
        buffer,
        len(before),
        len(buffer) - 4,
        base_offset=base_offset,
        leader_epoch=epoch,
        last_offsets=last_offsets,
        ends=ends,
    )
    assert (position, reached) == (len(expected), offset)
    assert buffer == expected + b"rest"
    assert [*zip(last_offsets, ends, strict=True)] == wanted


@given(batches=batches, place=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_a_damaged_batch_ends_it_before_anything_of_it_is_changed(
    batches: list[bytes], place: float, mask: int
) -> None:
    whole = bytearray(b"".join(batches))
    at = int(len(whole) * place)
    whole[at] ^= mask
    sound = end = 0
    for batch in batches:
        end += len(batch)
        damaged = at < end and sound == end - len(batch)
        if not damaged or at - sound < 8 or 12 <= at - sound < 16:
            sound = end
        else:
            break
    after = bytes(whole)
    position, _ = stamp_batches(
        whole, 0, len(whole), base_offset=0, leader_epoch=0, last_offsets=array("q"), ends=array("q")
    )
    assert position == sound
    assert whole[sound:] == after[sound:]
    if position < len(whole):
        header = read_header(batches[0])
        assert header.magic == 2
        assert not (at >= position + 17 and crc_matches(whole, position, read_header(whole, position)))


def test_what_is_too_short_for_a_header_is_no_batch() -> None:
    buffer = bytearray(build_batch([Record(0, 0, None, b"x")]))
    for end in range(len(buffer)):
        last_offsets, ends = array("q"), array("q")
        found = stamp_batches(buffer, 0, end, base_offset=5, leader_epoch=0, last_offsets=last_offsets, ends=ends)
        assert found == (0, 5)
        assert not last_offsets
