"""The manager on a topic in memory: what is written is known, after a restart too, whatever happens to the topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from strandline.model import TopicIdPartition
from strandline.remote.ports import RemoteLogMetadataManager, RemoteResourceNotFound, RemoteStorageError
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.topic_based.partitioner import metadata_partition
from strandline.remote.topic_based.records import serialize
from strandline.testing.clock import VirtualClock
from strandline.testing.metadata_topic import MemoryMetadataTopic
from tests.remote.topic_based.making import (
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    PARTITION_STARTED,
    TP,
    deletion,
    partition,
    segment,
    update,
)
from tests.waiting import until

LIMITS = MetadataLimits(consume_wait=10.0)
OTHERS = (partition(1), partition(2), partition(3), partition(4))


class World:
    """A topic, and managers that come and go."""

    def __init__(self, directory: Path) -> None:
        self.clock = VirtualClock()
        self.topic = MemoryMetadataTopic(clock=self.clock)
        self.directory = directory

    @asynccontextmanager
    async def manager(
        self, *wanted: TopicIdPartition, limits: MetadataLimits = LIMITS
    ) -> AsyncIterator[TopicBasedRemoteLogMetadataManager]:
        manager = TopicBasedRemoteLogMetadataManager(
            self.topic, directory=self.directory, limits=limits, clock=self.clock
        )
        async with manager.running():
            manager.on_partition_leadership_changes(wanted or [TP], [])
            yield manager

    @asynccontextmanager
    async def ready(self, *wanted: TopicIdPartition) -> AsyncIterator[TopicBasedRemoteLogMetadataManager]:
        async with self.manager(*wanted) as manager:
            for each in wanted or [TP]:
                await until(lambda each=each: manager.is_ready(each))  # type: ignore[misc]
            yield manager

    def number(self, where: TopicIdPartition = TP) -> int:
        return metadata_partition(where, len(self.topic.values))

    def write(self, *values: bytes | None, where: TopicIdPartition = TP) -> None:
        """As another broker would."""
        self.topic.values[self.number(where)].extend(values)
        self.topic.wake()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_what_was_written_is_known_when_the_write_returns(world: World) -> None:
    async with world.ready() as manager:
        checked: RemoteLogMetadataManager = manager
        await checked.add_remote_log_segment_metadata(segment(1, 0, 9))
        assert manager.remote_log_segment_metadata(TP, 0, 5) is None
        await manager.update_remote_log_segment_metadata(update(1, FINISHED, custom=b"x"))
        found = manager.remote_log_segment_metadata(TP, 0, 5)
        assert found is not None
        assert (found.custom_metadata, found.broker_id) == (b"x", 2)
        assert manager.highest_offset_for_epoch(TP, 0) == 9
        assert manager.leader_epochs_from(TP, 5) == [(0, 0)]
        assert manager.remote_log_size(TP, 0) == 1000
        assert len(manager.list_remote_log_segments(TP)) == 1


async def test_a_second_manager_knows_what_the_first_wrote(world: World, tmp_path: Path) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        other = World(tmp_path / "other")
        other.topic = world.topic
        async with other.ready() as second:
            assert second.list_remote_log_segments(TP) == manager.list_remote_log_segments(TP)
            await second.update_remote_log_segment_metadata(update(1, FINISHED))
            await until(lambda: manager.remote_log_segment_metadata(TP, 0, 0))


async def test_an_illegal_write_is_refused_and_nothing_is_written(world: World) -> None:
    async with world.ready() as manager:
        with pytest.raises(RemoteResourceNotFound):
            await manager.update_remote_log_segment_metadata(update(1, FINISHED))
        await manager.add_remote_log_segment_metadata(segment(1))
        with pytest.raises(ValueError, match="cannot go from COPY_SEGMENT_STARTED to DELETE_SEGMENT_FINISHED"):
            await manager.update_remote_log_segment_metadata(update(1, DELETED))
        with pytest.raises(ValueError, match="cannot go from no deletion to DELETE_PARTITION_STARTED"):
            await manager.put_remote_partition_delete_metadata(deletion(PARTITION_STARTED))
        assert sum(map(len, world.topic.values)) == 1


async def test_a_write_that_another_broker_made_illegal_is_told(world: World) -> None:
    """Both were legal when they were written; the order in the topic decides."""
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        world.topic.hold_reads = True
        writing = asyncio.create_task(manager.update_remote_log_segment_metadata(update(1, FINISHED)))
        world.write(serialize(update(1, DELETING)))
        await until(lambda: len(world.topic.values[world.number()]) == 3)
        world.topic.hold_reads = False
        world.topic.wake()
        with pytest.raises(ValueError, match="cannot go from DELETE_SEGMENT_STARTED to COPY_SEGMENT_FINISHED"):
            await writing


async def test_a_write_that_is_not_read_back_in_time_is_an_error(world: World) -> None:
    async with world.ready() as manager:
        world.topic.hold_reads = True
        writing = asyncio.create_task(manager.add_remote_log_segment_metadata(segment(1)))
        await world.clock.advance(11.0)
        with pytest.raises(RemoteStorageError, match="not read back within 10 s"):
            await writing


async def test_a_topic_that_takes_no_writes_is_an_error(world: World) -> None:
    async with world.ready() as manager:
        world.topic.fail_appends = "its leader is away"
        with pytest.raises(RemoteStorageError, match="its leader is away"):
            await manager.add_remote_log_segment_metadata(segment(1))


async def test_a_write_for_a_partition_that_was_not_announced_waits_until_it_is_ready(world: World) -> None:
    world.topic = MemoryMetadataTopic(clock=world.clock, led=())
    async with world.manager(OTHERS[0]) as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        assert len(manager.list_remote_log_segments(TP)) == 1


async def test_questions_before_everything_was_read_are_an_error(world: World) -> None:
    world.topic.fail_reads = "its leader is away"
    async with world.manager() as manager:
        assert not manager.is_ready(TP)
        await until(lambda: manager.status() and manager.status()[world.number()].last_error)
        with pytest.raises(RemoteStorageError, match="its leader is away"):
            manager.list_remote_log_segments(TP)
        world.topic.fail_reads = None
        await world.clock.advance(5.0)
        await until(lambda: manager.is_ready(TP))
        assert manager.list_remote_log_segments(TP) == []


async def test_before_the_topic_is_made_everything_is_an_error_and_then_goes_on(world: World) -> None:
    world.topic.exists = False
    async with world.manager() as manager:
        with pytest.raises(RemoteStorageError, match="The topic __remote_log_metadata does not exist yet"):
            manager.list_remote_log_segments(TP)
        with pytest.raises(RemoteStorageError, match="The topic __remote_log_metadata does not exist yet"):
            await manager.add_remote_log_segment_metadata(segment(1))
        world.topic.appear()
        await manager.add_remote_log_segment_metadata(segment(1))
        assert manager.is_ready(TP)


async def test_partitions_of_deleted_topics_are_found_where_this_broker_leads(world: World) -> None:
    world.write(serialize(segment(1, where=OTHERS[0])), serialize(segment(2, where=OTHERS[0])), where=OTHERS[0])
    world.write(serialize(deletion(MARKED, OTHERS[0])), where=OTHERS[0])
    async with world.ready(OTHERS[1]) as manager:
        await until(lambda: manager.is_ready(OTHERS[0]))
        assert list(manager.partitions()) == [OTHERS[0]]
        assert manager.partition_delete_state(OTHERS[0]) is MARKED
        assert manager.partition_delete_state(OTHERS[1]) is None


async def test_metadata_partitions_that_this_broker_does_not_need_are_not_read(world: World) -> None:
    world.topic = MemoryMetadataTopic(clock=world.clock, led=())
    async with world.ready() as manager:
        assert [status.partition for status in manager.status()] == [world.number()]
        with pytest.raises(RemoteStorageError, match="This broker has no replica of the partition"):
            manager.list_remote_log_segments(next(p for p in OTHERS if world.number(p) != world.number()))


async def test_a_new_leader_is_ready_when_it_has_read_what_the_old_one_wrote(world: World) -> None:
    async with world.ready() as manager:
        world.topic.hold_reads = True
        world.write(serialize(segment(1)))
        manager.on_partition_leadership_changes([TP], [])
        await world.clock.settle()
        assert not manager.is_ready(TP)
        world.topic.hold_reads = False
        world.topic.wake()
        await until(lambda: manager.is_ready(TP))
        assert len(manager.list_remote_log_segments(TP)) == 1


async def test_a_corrupt_record_is_skipped_with_one_line_that_names_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    good = serialize(segment(1))
    world.write(good, good[:20], None, b"\xff" * 30, serialize(segment(2, 10, 19)))
    with caplog.at_level(logging.WARNING):
        async with world.ready() as manager:
            assert [found.start_offset for found in manager.list_remote_log_segments(TP)] == [0, 10]
            await manager.update_remote_log_segment_metadata(update(2, FINISHED))
    lines = [record.getMessage() for record in caplog.records]
    name = f"__remote_log_metadata-{world.number()}"
    assert [line.split(":")[1].strip() for line in lines] == [
        f"the record at offset {offset} is skipped" for offset in (1, 2, 3)
    ]
    assert all(line.startswith(name) for line in lines)


async def test_a_restart_reads_only_what_is_new(world: World) -> None:
    async with world.ready() as manager:
        for number in range(5):
            await manager.add_remote_log_segment_metadata(segment(number, number * 10, number * 10 + 9))
            await manager.update_remote_log_segment_metadata(update(number, FINISHED))
        known = manager.list_remote_log_segments(TP)
    offsets = (world.directory / "_rlmm_committed_offsets").read_text()
    assert offsets == f"{world.number()} 10\n"
    world.topic.values[world.number()][:10] = [None] * 10
    world.write(serialize(update(0, DELETING)))
    async with world.ready() as manager:
        assert manager.list_remote_log_segments(TP)[1:] == known[1:]
        assert manager.list_remote_log_segments(TP)[0].state is DELETING
        assert manager.highest_offset_for_epoch(TP, 0) == 49


async def test_a_snapshot_is_written_while_the_broker_runs(world: World) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        await world.clock.advance(LIMITS.snapshot_interval)
        await manager.update_remote_log_segment_metadata(update(1, FINISHED))
        await until(lambda: (world.directory / "_rlmm_committed_offsets").exists())


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a flipped bit": ("snapshot", _flip),
    "a cut file": ("snapshot", _cut),
    "an empty file": ("snapshot", lambda path: path.write_bytes(b"")),
    "a missing file": ("snapshot", Path.unlink),
    "committed offsets that are none": ("offsets", lambda path: path.write_text("0 zero\n")),
    "a later committed offset": ("offsets", lambda path: path.write_text("0 99\n1 99\n2 99\n")),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_or_stale_snapshot_is_not_used(
    world: World, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        known = manager.list_remote_log_segments(TP)
    which, spoil = DAMAGES[damage]
    files = {
        "snapshot": world.directory / f"_rlmm_snapshot.{world.number()}",
        "offsets": world.directory / "_rlmm_committed_offsets",
    }
    spoil(files[which])
    with caplog.at_level(logging.WARNING):
        async with world.ready() as manager:
            assert manager.list_remote_log_segments(TP) == known
    assert any(str(files["snapshot"]) in line or str(files["offsets"]) in line for line in caplog.messages)


async def test_a_log_directory_gets_no_directory_that_kafka_would_take_for_a_partition(world: World) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
    assert {path.name: path.is_file() for path in world.directory.iterdir()} == {
        "_rlmm_committed_offsets": True,
        f"_rlmm_snapshot.{world.number()}": True,
    }


async def test_without_committed_offsets_everything_is_read_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
    (world.directory / "_rlmm_committed_offsets").unlink()
    world.topic.values[world.number()] = [serialize(segment(2))]
    async with world.ready() as manager:
        assert [found.segment_id.id.int for found in manager.list_remote_log_segments(TP)] == [2]
    assert caplog.messages == []


async def test_a_snapshot_of_a_topic_that_was_made_again_is_not_used(world: World) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
    world.topic.appear(UUID(int=0x99))
    async with world.ready() as manager:
        assert manager.list_remote_log_segments(TP) == []


async def test_a_topic_that_is_made_again_is_read_again(world: World) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        world.topic.appear(UUID(int=0x99))
        await manager.add_remote_log_segment_metadata(segment(2))
        assert [found.segment_id.id.int for found in manager.list_remote_log_segments(TP)] == [2]


async def test_a_topic_that_lost_its_end_is_read_from_its_beginning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
        await manager.add_remote_log_segment_metadata(segment(2, 10, 19))
        del world.topic.values[world.number()][1:]
        world.topic.wake()
        await until(lambda: manager.is_ready(TP) and len(manager.list_remote_log_segments(TP)) == 1)
    assert "is read from its beginning: The partition ends at offset 1, before 2" in caplog.text


async def test_short_trouble_is_no_line_in_the_log_and_lasting_trouble_is_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.ready() as manager:
        world.topic.fail_reads = "its leader is away"
        world.topic.wake()
        await until(lambda: manager.status()[world.number()].last_error)
        await world.clock.advance(0.5)
        assert caplog.messages == []
        await world.clock.advance(30.0)
        lines = [line for line in caplog.messages if line.startswith(f"__remote_log_metadata-{world.number()} cannot")]
        assert len(lines) == 1
        await world.clock.advance(LIMITS.retry_max_timeout)
        assert "ERROR" in [record.levelname for record in caplog.records]
        world.topic.fail_reads = None
        await world.clock.advance(5.0 + LIMITS.read_wait)
        await until(lambda: manager.status()[world.number()].last_error is None)


async def test_a_crash_between_snapshot_and_committed_offset_does_no_harm(world: World) -> None:
    offsets = world.directory / "_rlmm_committed_offsets"
    async with world.ready() as manager:
        await manager.add_remote_log_segment_metadata(segment(1))
    before = offsets.read_text()
    async with world.ready() as manager:
        await manager.update_remote_log_segment_metadata(update(1, FINISHED))
        known = manager.list_remote_log_segments(TP)
    assert offsets.read_text() != before
    offsets.write_text(before)
    world.topic.values[world.number()] = [None, None]
    async with world.ready() as manager:
        assert manager.list_remote_log_segments(TP) == known
