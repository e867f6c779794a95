"""The size of the diskless part, for retention.bytes: never more than there is."""

from __future__ import annotations

from uuid import UUID

from strandline.hybrid.suffix_sizes import SuffixSizes
from tests.partitions import id_partition

P = id_partition(UUID(int=7), 3)


def test_rows_and_segments_add_up() -> None:
    sizes = SuffixSizes()
    assert sizes(P) == 0
    sizes.set(P, 100)
    assert sizes(P) == 100
    sizes.set_rows(P, 40, read_boundary=50)
    assert sizes(P) == 100, "half of the figures is none"
    sizes.set_converted(P, 60, read_boundary=50)
    assert sizes(P) == 100
    sizes.set_rows(P, 90, read_boundary=50)
    assert sizes(P) == 150


def test_what_has_just_been_converted_does_not_count_twice() -> None:
    sizes = SuffixSizes()
    sizes.set(P, 100)
    sizes.set_rows(P, 100, read_boundary=0)
    sizes.set_converted(P, 100, read_boundary=50)
    assert sizes(P) == 100
    sizes.set_rows(P, 0, read_boundary=50)
    assert sizes(P) == 100
    # The figure of rows came first.
    sizes.set_rows(P, 10, read_boundary=70)
    assert sizes(P) == 100


def test_a_partition_that_is_not_converted_any_more() -> None:
    sizes = SuffixSizes()
    sizes.set(P, 7)
    sizes.set_rows(P, 1, read_boundary=50)
    sizes.set_converted(P, 2, read_boundary=50)
    sizes.forget_converted(P)
    assert sizes(P) == 7
    sizes.forget(P)
    assert sizes(P) == 0
