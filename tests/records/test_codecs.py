"""Codecs: data of other clients is read, and a decompression bomb is refused."""

from __future__ import annotations

import gzip
import struct
import tracemalloc

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import CorruptMessage, UnsupportedCompressionType
from strandline.records import Codec, Record, build_batch, compress, decompress, read_header, read_records

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"the quick brown fox jumps over the lazy dog " * 9_000


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"a", TEXT, TEXT * 12], ids=len)
def test_round_trip(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@given(st.sampled_from(list(Codec)), st.binary(max_size=3000), st.integers(1, 50))
def test_any_bytes_come_back(codec: Codec, data: bytes, times: int) -> None:
    assert decompress(codec, memoryview(compress(codec, memoryview(data * times)))) == data * times


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 1, 17), (Codec.ZSTD, -5, 19), (Codec.LZ4, 9, 12)]
)
def test_levels(codec: Codec, low: int, high: int) -> None:
    fast, small = compress(codec, TEXT, low), compress(codec, TEXT, high)
    assert decompress(codec, fast) == decompress(codec, small) == TEXT
    assert len(small) <= len(fast)


def test_gzip_without_a_level_is_the_default() -> None:
    assert compress(Codec.GZIP, TEXT, -1) == compress(Codec.GZIP, TEXT)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_is_refused(codec: Codec) -> None:
    bomb = compress(codec, bytes(4_000_000))
    assert len(decompress(codec, bomb, limit=4_000_000)) == 4_000_000
    with pytest.raises(CorruptMessage, match="more bytes than the broker allows"):
        decompress(codec, bomb, limit=3_999_999)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_damage_is_reported(codec: Codec) -> None:
    data = compress(codec, TEXT)
    for damaged in (data[:-5], data[: len(data) // 2], data[:5]):
        with pytest.raises(CorruptMessage):
            decompress(codec, damaged)


def test_a_snappy_block_that_lies_about_its_size_costs_nothing() -> None:
    liar = b"\xff\xff\xff\x3f" + b"abc"  # claims 128 MB less one byte
    tracemalloc.start()
    try:
        with pytest.raises(CorruptMessage, match="claims to hold"):
            decompress(Codec.SNAPPY, liar)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_snappy_is_framed_as_the_java_client_does() -> None:
    framed = compress(Codec.SNAPPY, b"x" * 40_000)
    assert framed.startswith(bytes.fromhex("82534e41505059000000000100000001"))
    first = struct.unpack_from(">i", framed, 16)[0]
    assert bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + first])) == b"x" * 32_768


def test_a_plain_snappy_block_is_read() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_streams_one_behind_the_other_are_read() -> None:
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"one") + compress(Codec.SNAPPY, b"two")) == b"onetwo"


@pytest.mark.parametrize("tail", [b"\x00\x00", b"\x00\x00\x00\x05ab", b"\xff\xff\xff\xff"])
def test_a_cut_snappy_stream_is_refused(tail: bytes) -> None:
    with pytest.raises(CorruptMessage):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"one") + tail)


def test_lz4_blocks_are_independent() -> None:
    frame = compress(Codec.LZ4, TEXT)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20, "Kafka's Java reader refuses frames whose blocks depend on each other"
    assert bytes(cramjam.lz4.decompress(frame)) == TEXT


def test_lz4_stores_what_it_cannot_compress() -> None:
    noise = bytes((i * i * 7919 + (i >> 3)) & 0xFF for i in range(3000))
    tight = compress(Codec.LZ4, compress(Codec.ZSTD, noise))
    assert decompress(Codec.LZ4, tight) == compress(Codec.ZSTD, noise)
    assert len(tight) <= len(compress(Codec.ZSTD, noise)) + 7 + 4 + 4


def test_the_frames_of_other_clients_are_read() -> None:
    assert decompress(Codec.LZ4, bytes(cramjam.lz4.compress(TEXT))) == TEXT
    assert decompress(Codec.GZIP, gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])) == TEXT


def test_an_unknown_codec_is_refused() -> None:
    batch = build_batch([Record(0, 0, None, b"v")])
    batch[22] |= 5
    with pytest.raises(UnsupportedCompressionType, match="5"):
        _ = read_header(batch).codec
    with pytest.raises(UnsupportedCompressionType):
        read_records(batch)
