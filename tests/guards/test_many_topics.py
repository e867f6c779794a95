"""A million topics: a change costs what it changes, and what looks at all of them does so in short steps."""

from __future__ import annotations

import zlib
from collections.abc import Generator

import pytest
from bench.growing.topics import CHANGES, bytes_of, image_of, records_of

from strandline.metadata.comparison import COMPARED_PER_STEP, compared_in_steps
from strandline.metadata.delta import BUILT_PER_STEP, ImageBuilder
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage
from strandline.metadata.log.snapshot import ENTRIES_PER_STEP, decode_in_steps, encode_in_steps
from tests.guards.counting import CountedInstructions

FEW, MANY = 2_000, 20_000
# The list of buckets of each map, and the buckets of ten topics; a copy of one map of MANY would be 600,000.
BYTES_OF_A_CHANGE = 200_000
INSTRUCTIONS_EACH, INSTRUCTIONS_PER_STEP = 1_000, 20_000


@pytest.fixture(scope="module")
def few() -> MetadataImage:
    return image_of(FEW)


@pytest.fixture(scope="module")
def many() -> MetadataImage:
    return image_of(MANY)


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_looks_at_what_it_changes(what: str, few: MetadataImage, many: MetadataImage) -> None:
    def work(image: MetadataImage) -> int:
        CHANGES[what](image)  # whatever is made once
        with CountedInstructions() as counted:
            CHANGES[what](image)
        return counted.total

    assert work(many) <= 1.1 * work(few)


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_copies_what_it_changes(what: str, many: MetadataImage) -> None:
    assert bytes_of(CHANGES[what], many) <= BYTES_OF_A_CHANGE


def longest_step(work: Generator[None, None, object]) -> int:
    with CountedInstructions() as counted:
        for _ in work:
            counted.end_turn()
    return counted.longest_turn


def test_a_snapshot_is_written_and_read_in_short_steps(few: MetadataImage) -> None:
    most = INSTRUCTIONS_EACH * ENTRIES_PER_STEP + INSTRUCTIONS_PER_STEP
    assert longest_step(encode_in_steps(few)) <= most
    packed = b""
    steps = encode_in_steps(few)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        packed = end.value
    assert longest_step(decode_in_steps(zlib.decompress(packed).decode())) <= most


def test_images_are_compared_in_short_steps(few: MetadataImage) -> None:
    most = INSTRUCTIONS_EACH * COMPARED_PER_STEP + INSTRUCTIONS_PER_STEP
    assert longest_step(compared_in_steps(EMPTY_IMAGE, few)) <= most


def test_an_image_is_made_of_many_records_in_short_steps() -> None:
    builder = ImageBuilder(EMPTY_IMAGE)
    for offset, record in enumerate(records_of(FEW)):
        builder.apply(offset, record)
    assert longest_step(builder.build_in_steps()) <= INSTRUCTIONS_EACH * BUILT_PER_STEP + INSTRUCTIONS_PER_STEP
