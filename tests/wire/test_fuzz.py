"""Damaged requests: the parser raises MalformedRequest, quickly and without much memory."""

from __future__ import annotations

import struct
import sys
import tracemalloc
import zlib
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.clock import SystemChance
from strandline.wire.api import KNOWN_APIS, ApiKey
from strandline.wire.primitives import MAX_ELEMENTS, MalformedRequest, write_uvarint
from strandline.wire.registry import codec, decode_request, decode_response
from tests.wire.frames import Frame, frames_by_api, golden_frames

REQUESTS = tuple(frame for frame in golden_frames() if frame.is_request)
MUTATIONS_PER_FRAME = 12
# The largest Python object that one byte of a request can create, with a wide margin.
MEMORY_PER_BYTE = 800
CALLS_PER_BYTE = 12
_LENGTHS = (-2, -1, 0x7FFFFFFF, -0x80000000, 0x10000)


def decodes(data: bytes) -> bool:
    """Whether a request can be read. Anything but MalformedRequest escapes and fails the test."""
    try:
        decode_request(memoryview(data))
    except MalformedRequest:
        return False
    return True


def mutated(data: bytes, chance: SystemChance) -> bytes:
    """One of: cut, a byte changed, a length blown up, bytes inserted, bytes removed, bytes repeated."""
    out = bytearray(data or b"\x00")
    # The first four bytes say which API it is: changing them is tested elsewhere.
    at = 4 + chance.below(len(out) - 4) if len(out) > 4 else 0
    match chance.below(6):
        case 0:
            del out[at:]
        case 1:
            out[at] = chance.below(256)
        case 2:
            out[at : at + 4] = struct.pack(">i", _LENGTHS[chance.below(len(_LENGTHS))])
        case 3:
            out[at:at] = bytes(chance.below(256) for _ in range(1 + chance.below(8)))
        case 4:
            del out[at : at + 1 + chance.below(8)]
        case _:
            out[at : at + 5] = b"\xff\xff\xff\xff" + bytes([(0x07, 0x0F, 0x7F, 0xFF)[chance.below(4)]])
    return bytes(out)


@pytest.mark.parametrize("api_name", frames_by_api())
def test_damaged_frames_are_malformed_or_harmless(api_name: str) -> None:
    for frame in frames_by_api()[api_name]:
        chance = SystemChance(zlib.crc32(str(frame).encode()))
        for _ in range(MUTATIONS_PER_FRAME):
            data = frame.data
            for _ in range(1 + chance.below(3)):
                data = mutated(data, chance)
            if frame.is_request:
                decodes(data)
            else:
                decodes_response(frame, data)


def decodes_response(frame: Frame, data: bytes) -> bool:
    try:
        decode_response(ApiKey(frame.api_key), frame.api_version, memoryview(data))
    except MalformedRequest:
        return False
    return True


def test_a_request_cut_anywhere_is_malformed() -> None:
    """Requests of the raw client have no optional tail: every prefix is incomplete."""
    for frame in REQUESTS:
        if frame.client == "raw" and len(frame.data) < 200:
            for length in range(len(frame.data)):
                assert not decodes(frame.data[:length]), f"{frame} cut to {length} bytes"


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_random_bytes(data: bytes) -> None:
    decodes(data)


@given(st.sampled_from(sorted(KNOWN_APIS)), st.integers(0, 20), st.binary(max_size=200))
@settings(max_examples=1500)
def test_random_bodies(api_key: ApiKey, version: int, body: bytes) -> None:
    decodes(struct.pack(">hhih", api_key, version, 7, -1) + b"\x00" + body)


@pytest.mark.parametrize("api_key", sorted(KNOWN_APIS), ids=lambda key: key.name)
@pytest.mark.parametrize("fill", [0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF], ids=hex)
def test_memory_and_work_follow_the_bytes_received(api_key: ApiKey, fill: int) -> None:
    body = bytes([fill]) * 4000
    for version in range(KNOWN_APIS[api_key].min, KNOWN_APIS[api_key].max + 1):
        codec(api_key)  # imported before the measurement
        calls, peak = cost_of(struct.pack(">hhih", api_key, version, 7, -1) + b"\x00" + body)
        assert peak < MEMORY_PER_BYTE * len(body)
        assert calls < CALLS_PER_BYTE * len(body)


def cost_of(data: bytes) -> tuple[int, int]:
    """How many functions were called to decode `data`, and how many bytes were allocated at the peak."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1

    tracemalloc.start()
    sys.setprofile(count)
    try:
        decodes(data)
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, peak


def test_an_array_that_announces_two_billion_elements_allocates_nothing() -> None:
    header = struct.pack(">hhih", ApiKey.METADATA, 8, 7, -1)
    _, peak = cost_of(header + struct.pack(">i", 0x7FFFFFFF) + b"\x00" * 64)
    assert peak < 64 * 1024


def test_a_well_formed_request_with_too_many_elements_is_refused() -> None:
    def topics(count: int) -> bytes:
        length = bytearray()
        write_uvarint(length, count + 1)
        header = struct.pack(">hhih", ApiKey.METADATA, 9, 7, -1) + b"\x00"
        return header + length + b"\x01\x00" * count + b"\x00\x00\x00\x00"

    assert decodes(topics(MAX_ELEMENTS))
    assert not decodes(topics(MAX_ELEMENTS + 1))
    assert decodes(topics(1000))
