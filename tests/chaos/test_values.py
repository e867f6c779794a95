"""What a record carries follows from its value, so that each reader can tell whether it is what was sent."""

from __future__ import annotations

import pytest
from chaos.values import TORN, payload_of, stream_of, value_in, value_of

VALUES = [value_of("txn-1", number) for number in range(1, 3000)]


def test_a_value_comes_back_from_its_payload() -> None:
    assert [value_in(payload_of(value)) for value in VALUES] == VALUES
    copy = value_of("copy-1", 7, (12, VALUES[0]))
    assert value_in(payload_of(copy)) == copy


def test_some_payloads_fill_a_batch_and_most_are_small() -> None:
    sizes = [len(payload_of(value)) for value in VALUES]
    assert max(sizes) > 250_000
    assert sorted(sizes)[len(sizes) // 2] < 20
    assert sum(sizes) / len(sizes) < 2_000


@pytest.mark.parametrize("position", [0, 3, -1])
def test_a_changed_byte_is_found(position: int) -> None:
    value = next(one for one in VALUES if len(payload_of(one)) > 1000)
    payload = bytearray(payload_of(value))
    payload[position] ^= 1
    assert value_in(bytes(payload)).startswith(TORN)


def test_what_is_cut_off_or_appended_is_found() -> None:
    payload = payload_of(VALUES[0])
    assert [value_in(one).startswith(TORN) for one in (payload[:-1], payload + b"x", b"", b"\xff|")] == [True] * 4


def test_a_torn_value_is_alone_in_its_stream() -> None:
    assert stream_of(value_in(b"x")) == (value_in(b"x"), 0)
