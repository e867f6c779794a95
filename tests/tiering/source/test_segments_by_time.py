"""In a large segment the time index tells where to begin: what is too old is not read, and nothing else is missed."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from strandline.reads import FetchIsolation
from strandline.tiering.source import fetching
from strandline.tiering.source.decoding import Decoder, Wanted
from strandline.tiering.source.fetching import PartsFetcher
from strandline.tiering.source.parts import SegmentPart
from strandline.tiering_api.values import SegmentDescription
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import P0, Write
from tests.hybrid.diskless.converting import ConvertingWorld, open_converting


class OpenStores:
    """The stores of a world."""

    def __init__(self, world: ConvertingWorld) -> None:
        self._world = world

    async def remote(self) -> Any:
        return self._world.storage


@pytest.mark.parametrize("wanted_from", [0, 9, 10, 11, 55, 99, 100])
async def test_only_what_is_new_enough_is_read(
    tmp_path: Path, wanted_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 1000)  # so that this segment is a large one
    async with open_converting(tmp_path) as world:
        for number in range(0, 100, 10):  # ten batches, one record for each millisecond, some of them late
            await world.lake.write(Write(P0, 10, 50, NOON_MS + number, 1), Write(P0, 1, 50, NOON_MS + number // 2))
        end = world.lake.high_watermark(P0)
        segment = await world.upload(P0, end)
        described = SegmentDescription(
            segment_id=segment.segment_id.id,
            start_offset=0,
            end_offset=end - 1,
            max_timestamp_ms=segment.max_timestamp_ms,
            broker_id=1,
            event_timestamp_ms=0,
            segment_size_in_bytes=segment.segment_size_in_bytes,
            leader_epochs=tuple(segment.segment_leader_epochs.items()),
        )
        earliest = NOON_MS + wanted_from
        fetcher = PartsFetcher(
            P0,
            cast("Any", OpenStores(world)),
            cast("Any", None),
            isolation=FetchIsolation.HIGH_WATERMARK,
            min_timestamp=earliest,
        )

        async def read(minimum: int) -> tuple[list[int], int]:
            wanted = Wanted(start=0, end=end, min_timestamp=minimum)
            decoder = Decoder(P0.topic, 0, wanted, include_headers=False)
            pages: list[Any] = []
            size = 0
            part = SegmentPart(start=0, end=end, segment=described)
            async with aclosing(fetcher.chunks([part])) as chunks:
                async for _, chunk in chunks:
                    size += len(chunk.data)
                    pages += decoder.feed(chunk.data, name=chunk.name)
            pages += decoder.finish()
            return [row["offset"] for page in pages for row in page.to_pylist()], size

        found, size = await read(earliest)
        times = [NOON_MS + number + step for number in range(0, 100, 10) for step in (*range(10), number // 2 - number)]
        assert found == [offset for offset, time in enumerate(times) if time >= earliest]
        if wanted_from > 20:
            assert size < segment.segment_size_in_bytes * (130 - wanted_from) / 100
