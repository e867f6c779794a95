"""The reader of a log whose first records were written before its topic became diskless: it never answers below B0."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from strandline.diskless.reader import OffsetLookups
from strandline.errors import NotLeaderOrFollower, OffsetOutOfRange
from strandline.reads import NOTHING, FoundOffset
from tests.controlplane.switching import P, switched
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import Lake, Write, data_of, open_lake, read_one


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    """P begins at offset 20 and is diskless from 100 on."""
    async with open_lake(create=False) as opened:
        await switched(opened.plane, 100, log_start=20)
        yield opened


async def test_offsets_of_the_prefix_are_refused_with_an_error_upon_which_no_consumer_skips_them(lake: Lake) -> None:
    reader = lake.reader()
    assert isinstance(await read_one(reader, P, 50), NotLeaderOrFollower)  # the suffix is empty
    await lake.write(Write(P, records=3), reader=reader)
    for offset in (20, 99):
        assert isinstance(await read_one(reader, P, offset), NotLeaderOrFollower)
        assert isinstance(await read_one(lake.reader(), P, offset), NotLeaderOrFollower)
    assert isinstance(await read_one(reader, P, 19), OffsetOutOfRange)
    for other in (reader, lake.reader()):
        result = await read_one(other, P, 100)
        assert data_of(result) == lake.expected(P, 100)


async def test_lookups_are_about_the_suffix(lake: Lake) -> None:
    lookups = OffsetLookups(lake.plane.reads, lake.reader())
    assert await lookups.earliest(P) == FoundOffset(-1, 100, -1)
    assert await lookups.latest(P) == FoundOffset(-1, 100, 3)
    assert await lookups.by_timestamp(P, 0) == NOTHING
    assert await lookups.of_max_timestamp(P) == NOTHING
    await lake.write(Write(P, records=3, step_ms=10), leader_epoch=5)
    assert await lookups.earliest(P) == FoundOffset(-1, 100, 5)
    assert await lookups.earliest_local(P) == FoundOffset(-1, 100, 5)
    assert await lookups.by_timestamp(P, 0) == FoundOffset(NOON_MS, 100, 5)
    assert await lookups.of_max_timestamp(P) == FoundOffset(NOON_MS + 20, 102, 5)
    await lake.plane.trimming.delete_records({P: 101})
    assert await lookups.earliest(P) == FoundOffset(-1, 101, 5)
