"""Assignments of consumers, as `strandline groups describe` reads them; `test_commands` runs the command itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.admin.commands.groups.kinds import assigned_partitions


def test_an_assignment_of_a_consumer() -> None:
    # version 1, two topics: "b" with 1 and 0, "a" with 3; no user data
    data = bytes.fromhex("0001 00000002 0001 62 00000002 00000001 00000000 0001 61 00000001 00000003 ffffffff")
    assert assigned_partitions("consumer", data) == (("a", 3), ("b", 0), ("b", 1))
    assert assigned_partitions("connect", data) == ()
    assert assigned_partitions("consumer", b"") == ()


@given(st.binary(max_size=60))
def test_any_bytes_are_an_assignment_or_none(data: bytes) -> None:
    assert isinstance(assigned_partitions("consumer", data), tuple)
