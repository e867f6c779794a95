"""In a large segment the time index tells where to begin: what is too old is not read, and nothing else is missed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from strandline.conversion_api.values import SegmentDescription
from strandline.pipeline.source import fetching
from strandline.pipeline.source.decoding import Decoder, Wanted
from strandline.pipeline.source.fetching import PartsFetcher
from strandline.pipeline.source.parts import SegmentPart
from strandline.reads import FetchIsolation
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import P0, Write
from tests.hybrid.diskless.converting import ConvertingWorld, open_converting


class OpenStores:
    """The stores of a world."""

    def __init__(self, world: ConvertingWorld) -> None:
        self._world = world

    async def remote(self) -> Any:
        return self._world.storage


@asynccontextmanager
async def a_segment(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ConvertingWorld, SegmentDescription]]:
    """A world with ten batches in one segment, one record for each millisecond, some of them late."""
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 1000)  # so that this segment is a large one
    async with open_converting(directory) as world:
        for number in range(0, 100, 10):
            await world.lake.write(Write(P0, 10, 50, NOON_MS + number, 1), Write(P0, 1, 50, NOON_MS + number // 2))
        end = world.lake.high_watermark(P0)
        segment = await world.upload(P0, end)
        yield (
            world,
            SegmentDescription(
                segment_id=segment.segment_id.id,
                start_offset=0,
                end_offset=end - 1,
                max_timestamp_ms=segment.max_timestamp_ms,
                broker_id=1,
                event_timestamp_ms=0,
                segment_size_in_bytes=segment.segment_size_in_bytes,
                leader_epochs=tuple(segment.segment_leader_epochs.items()),
            ),
        )


TIMES = [NOON_MS + number + step for number in range(0, 100, 10) for step in (*range(10), number // 2 - number)]


async def read(world: ConvertingWorld, part: SegmentPart, minimum: int) -> tuple[list[int], int]:
    """The offsets that are found in a part, and how many bytes are read for them."""
    fetcher = PartsFetcher(
        P0,
        cast("Any", OpenStores(world)),
        cast("Any", None),
        isolation=FetchIsolation.HIGH_WATERMARK,
        min_timestamp=minimum,
    )
    wanted = Wanted(start=part.start, end=part.end, min_timestamp=minimum)
    decoder = Decoder(P0.topic, 0, wanted, include_headers=False)
    pages: list[Any] = []
    size = behind = 0
    async with aclosing(fetcher.chunks([part])) as chunks:
        async for _, chunk in chunks:
            size, behind = size + len(chunk.data), chunk.end
            pages += decoder.feed(chunk.data, name=chunk.name)
    assert behind >= part.end, "a part that is over says so, even if there was nothing in it"
    pages += decoder.finish()
    return [row["offset"] for page in pages for row in page.to_pylist()], size


@pytest.mark.parametrize("wanted_from", [0, 9, 10, 11, 55, 99, 100])
async def test_only_what_is_new_enough_is_read(
    tmp_path: Path, wanted_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_segment(tmp_path, monkeypatch) as (world, segment):
        earliest = NOON_MS + wanted_from
        found, size = await read(world, SegmentPart(start=0, end=len(TIMES), segment=segment), earliest)
        assert found == [offset for offset, time in enumerate(TIMES) if time >= earliest]
        if wanted_from > 20:
            assert size < segment.segment_size_in_bytes * (130 - wanted_from) / 100


@pytest.mark.parametrize("length", [1, 7, 11, 40])
async def test_a_segment_that_is_cut_has_pieces_without_anything_new_enough(
    tmp_path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_segment(tmp_path, monkeypatch) as (world, segment):
        for wanted_from in (0, 9, 10, 35, 55, 99, 100):
            earliest, every, old_bytes = NOON_MS + wanted_from, list[int](), 0
            for start in range(0, len(TIMES), length):
                part = SegmentPart(start=start, end=min(start + length, len(TIMES)), segment=segment)
                found, size = await read(world, part, earliest)
                every += found
                old_bytes += size if part.end < wanted_from - 11 else 0
            assert every == [offset for offset, time in enumerate(TIMES) if time >= earliest]
            assert old_bytes == 0
