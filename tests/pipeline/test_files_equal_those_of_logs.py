"""What the pipeline makes of batches is what a log makes of them and RemoteLogManager copies, file by file."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.clock import SystemChance
from strandline.config.topic import TopicConfig
from strandline.conversion_api.values import BegunSegment, SplitFile
from strandline.records.codecs import Codec
from tests.log.harness import LogHarness
from tests.log.test_golden_tiered import files_of
from tests.pipeline.layouts import NOW, ORDERS, OTHERS, Produced, open_wal_world, produced


@dataclass(frozen=True)
class Layout:
    """Batches in WAL objects, and where the classic log begins a new segment."""

    files: tuple[tuple[Produced, ...], ...]
    closes_segment: tuple[bool, ...]
    append_times: tuple[int | None, ...]
    index_interval: int
    buffer_bytes: int


def layout_of(seed: int) -> Layout:
    """Sequences and duplicates, all codecs, epochs, timestamps out of order or missing, other partitions between."""
    chance = SystemChance(seed)
    is_append_time = chance.below(10) < 4
    epoch, sequences, epochs = 0, dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 0)
    files, closes, times = [], [], []
    for number in range(2 + chance.below(5)):
        batches: list[Produced] = []
        for _ in range(1 + chance.below(11)):
            epoch += chance.below(10) < 1
            if chance.below(10) < 3:
                batches.append(Produced(produced(1 + chance.below(8)), OTHERS, epoch))
                continue
            count, producer = 1 + chance.below(19), chance.shuffled((-1, 0, 1, 2))[0]
            timestamp = NOW + chance.below(20_000) - 10_000
            if producer < 0 and chance.below(10) < 3:
                timestamp = -1
            elif producer >= 0 and chance.below(10) < 1:
                epochs[producer], sequences[producer] = epochs[producer] + 1, 0
            data = produced(
                count,
                size=chance.shuffled((1, 50, 900))[0],
                timestamp=timestamp,
                codec=Codec(chance.below(5)),
                producer_id=producer,
                producer_epoch=epochs.get(producer, 0),
                sequence=sequences.get(producer, -1),
            )
            batches.append(Produced(data, ORDERS, epoch, begins_row=chance.below(10) < 3))
            if producer >= 0:
                sequences[producer] += count
                if chance.below(10) < 1:
                    batches.append(Produced(data, ORDERS, epoch, is_refused=True))
        files.append(tuple(batches))
        closes.append(chance.below(10) < 4)
        times.append(NOW + number if is_append_time else None)
    closes[-1] = True
    interval, buffer_bytes = chance.shuffled((0, 300, 4096))[0], chance.shuffled((1, 200_000, 1 << 20))[0]
    return Layout(tuple(files), tuple(closes), tuple(times), interval, buffer_bytes)


def of_a_log(layout: Layout, root: Path) -> list[dict[str, bytes]]:
    """The files that RemoteLogManager would copy."""
    is_append_time = layout.append_times[0] is not None
    config = TopicConfig(
        remote_storage_enable=True,
        index_interval_bytes=layout.index_interval,
        message_timestamp_type="LogAppendTime" if is_append_time else "CreateTime",
    )
    harness = LogHarness(root, config, remote_enabled=True)
    harness.create()
    for batches, closes in zip(layout.files, layout.closes_segment, strict=True):
        for one in batches:
            if one.partition == ORDERS:
                info = harness.append(memoryview(bytearray(one.data)), epoch=one.leader_epoch)
                assert info.is_duplicate == one.is_refused
        harness.clock.move(0.001)
        if closes:
            harness.log.roll()
    return [files_of(segment) for segment in harness.log.remote.segments_to_copy(0)]


async def of_the_pipeline(layout: Layout, root: Path) -> list[dict[str, bytes]]:
    """The files in remote storage after conversion."""
    async with open_wal_world(root) as world:
        chain: list[BegunSegment] = []
        splits: list[SplitFile] = []
        for batches, closes, append_time in zip(layout.files, layout.closes_segment, layout.append_times, strict=True):
            file = await world.write(batches, log_append_time=append_time)
            written = await world.split(file, buffer_bytes=layout.buffer_bytes)
            splits += [split.file for split in written if split.partition == ORDERS]
            if closes and splits:
                chain.append(world.begun(splits, index_interval_bytes=layout.index_interval))
                splits = []
        built = await world.merge(*chain, buffer_bytes=layout.buffer_bytes)
        assert [one.end_offset for one in built] == [begun.segment.end_offset for begun in chain]
        assert list(world.workdir.iterdir()) == []
        return [await world.files(begun) for begun in chain]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_a_segment_of_the_pipeline_is_the_segment_of_a_log(seed: int) -> None:
    layout = layout_of(seed)
    with tempfile.TemporaryDirectory() as directory:
        wanted = of_a_log(layout, Path(directory, "log"))
        found = asyncio.run(of_the_pipeline(layout, Path(directory, "pipeline")))
    assert found == wanted
