"""Any history of transactions: consumers see the same records whether they are local or remote."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.config.topic import TopicConfig
from strandline.model import TopicPartition
from strandline.reads import FetchIsolation
from tests.log.harness import LogHarness, batch
from tests.remote.reader.consuming import COMMITTED, UNCOMMITTED, Consumer
from tests.remote.reader.world import World, open_world

PRODUCERS = 3
# A producer writes, commits or aborts; 0 writes without a transaction.
steps = st.lists(
    st.tuples(st.integers(0, PRODUCERS), st.sampled_from(["write", "write", "write", "commit", "abort"])),
    min_size=5,
    max_size=60,
)


def write(harness: LogHarness, history: list[tuple[int, str]]) -> None:
    sequences = dict.fromkeys(range(1, PRODUCERS + 1), 0)
    is_open = dict.fromkeys(sequences, False)
    for producer, action in history:
        if producer == 0:
            harness.append(batch(2))
        elif action == "write":
            harness.append(batch(2, producer_id=producer, sequence=sequences[producer], is_transactional=True))
            sequences[producer] += 2
            is_open[producer] = True
        elif is_open[producer]:
            harness.end_transaction(producer, commits=action == "commit")
            is_open[producer] = False


def add_log(world: World) -> LogHarness:
    config = TopicConfig(
        remote_storage_enable=True, internal_segment_bytes=500, local_retention_bytes=1, retention_ms=-1
    )
    partition = TopicPartition("transfers", 0)
    harness = LogHarness(world.directory / "logs", config=config, partition=partition, remote_enabled=True)
    harness.create().assign_topic_id(UUID(int=0xFACE))
    world.logs.append(harness)
    return harness


@pytest.mark.parametrize("kept", [0, 2])
async def test_a_long_transaction_needs_more_transaction_indexes_than_are_kept(tmp_path: Path, kept: int) -> None:
    async with open_world(tmp_path) as world:
        world.indexes._aborted.max_bytes = kept * 600
        harness = add_log(world)
        # As long as the first is undecided, no index can say that nothing earlier was.
        write(harness, [(1, "write"), *([(2, "write"), (2, "abort")] * 20), (1, "abort"), (0, "write"), (0, "write")])
        before = await Consumer(await world.reader(), harness.log, COMMITTED, 500).visible(0)
        await world.tier(harness)
        async with asyncio.timeout(30):
            assert await Consumer(await world.reader(), harness.log, COMMITTED, 500).visible(0) == before


@given(history=steps, max_bytes=st.sampled_from([1, 500, 5000]), has_files=st.booleans())
@settings(max_examples=15, deadline=None)
def test_consumers_see_the_same_records_after_tiering(
    history: list[tuple[int, str]], max_bytes: int, *, has_files: bool
) -> None:
    async def run(directory: Path) -> None:
        async with open_world(directory) as world:
            harness = add_log(world)
            log = harness.log
            write(harness, history)
            reader = await world.reader(has_files=has_files)

            async def seen(isolation: FetchIsolation) -> list[int]:
                return await Consumer(reader, log, isolation, max_bytes).visible(0)

            before = [await seen(COMMITTED), await seen(UNCOMMITTED)]
            await world.tier(harness)
            assert [await seen(COMMITTED), await seen(UNCOMMITTED)] == before

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(Path(directory)))
