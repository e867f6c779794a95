"""`--once` on real Spark: what a Kafka client reads is the same before and after, whatever is damaged or repeated."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.clients.drivers import CODECS
from tests.spark.scene import convert, open_scene

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("spark")]


def test_everything_is_converted_and_clients_read_the_same(tmp_path: Path) -> None:
    """All codecs, several producers and partitions, LogAppendTime; and again for what was written meanwhile."""
    config = {"stamped": {"message.timestamp.type": "LogAppendTime"}}
    with open_scene(tmp_path / "broker", {"orders": 3, "stamped": 1}, config=config) as scene:
        for number, codec in enumerate(CODECS):
            scene.fill("orders", number % 3, 300, codec=codec)
            scene.fill("orders", 0, 40, codec=codec, note="another producer ")
            scene.fill("stamped", 0, 50, codec=codec)
        before = scene.log()
        rows = sum(len(records) for records in before.values())

        status, events = convert(scene)

        assert status == 0
        assert scene.is_converted
        assert scene.log() == before
        assert rows == 5 * 390
        done = events.last
        assert done["bytes_split"] == done["bytes_merged"] > 0
        assert done["segments"] == len(scene.segments("orders")) + len(scene.segments("stamped"))
        assert max(path.stat().st_size for path in scene.segments("orders")) <= 60_000
        assert len(scene.segments("orders")) > 3
        assert done["failures"] == done["refused"] == 0

        scene.fill("orders", 1, 100, note="later ")
        more = scene.log()
        status, events = convert(scene)
        assert (status, events.last["segments"]) == (0, 1)
        assert scene.is_converted
        assert scene.log() == more

        status, events = convert(scene)
        assert (status, events.last["files"], events.last["segments"]) == (0, 0, 0)


def test_only_the_topics_that_are_asked_for(tmp_path: Path) -> None:
    with open_scene(tmp_path / "broker", {"orders": 1, "clicks": 1}) as scene:
        for topic in scene.topics:
            scene.fill(topic, 0, 50)
        convert(scene, "clicks")
        assert scene.status("clicks").diskless_start_offset == 50
        assert scene.status("orders").diskless_start_offset == 0
        assert scene.status("orders").pending_batches_count > 0


def test_two_drivers_at_once_convert_everything_once(tmp_path: Path) -> None:
    with open_scene(tmp_path / "broker", {"orders": 4}) as scene:
        for turn in range(6):
            for partition in range(4):
                scene.fill("orders", partition, 40, note=f"{turn} ")
        before = scene.log()
        results = []
        drivers = [threading.Thread(target=lambda: results.append(convert(scene))) for _ in range(2)]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
        assert [status for status, _ in results] == [0, 0]
        # One may have ended while the other was at work on the last partition.
        status, last = convert(scene)
        assert status == 0
        assert scene.is_converted
        assert scene.log() == before
        ends = [events.last for _, events in (*results, (status, last))]
        assert sum(end["segments"] for end in ends) == len(scene.segments("orders"))
        assert sum(end["bytes_merged"] for end in ends) == sum(path.stat().st_size for path in scene.segments("orders"))


def test_a_damaged_wal_object_and_a_missing_one_do_not_stop_the_others(tmp_path: Path) -> None:
    with open_scene(tmp_path / "broker", {"orders": 3}) as scene:
        scene.fill("orders", 0, 50)
        (damaged,) = scene.objects("wal")
        scene.fill("orders", 1, 50)
        (missing,) = (path for path in scene.objects("wal") if path != damaged)
        scene.fill("orders", 2, 50)
        whole, gone = damaged.read_bytes(), missing.read_bytes()
        damaged.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
        missing.unlink()

        status, events = convert(scene)

        assert status == 1
        assert scene.status("orders").partitions[2].diskless_start_offset == 50
        assert [one.diskless_start_offset for one in scene.status("orders").partitions[:2]] == [0, 0]
        said = " ".join(events.last["failing"])
        assert damaged.name in said
        assert "is damaged at byte" in said
        assert missing.name in said
        assert len(events.of("failure")) == 2

        damaged.write_bytes(whole)
        missing.write_bytes(gone)
        status, _ = convert(scene)
        assert status == 0
        assert scene.is_converted
        assert len(scene.log()["orders", 1]) == 50


def test_a_missing_split_stops_its_partition_only(tmp_path: Path) -> None:
    wait = {"inkless.tiering.min.segment.bytes": "60000"}
    with open_scene(tmp_path / "broker", {"orders": 2}, settings=wait) as scene:
        scene.fill("orders", 0, 50)
        convert(scene)
        (split,) = scene.objects("split")  # too little for a segment
        content = split.read_bytes()
        split.unlink()
        for partition in range(2):
            for _ in range(3):
                scene.fill("orders", partition, 200)
        status, events = convert(scene)
        assert status == 1
        assert split.name in events.last["failing"][0]
        assert [one.diskless_start_offset > 0 for one in scene.status("orders").partitions] == [False, True]

        split.write_bytes(content)
        status, _ = convert(scene)
        assert status == 0
        assert scene.status("orders").partitions[0].diskless_start_offset > 0
        assert len(scene.log()["orders", 0]) == 650


def test_stores_that_executors_cannot_reach_are_a_sentence(tmp_path: Path) -> None:
    from strandline.pipeline.errors import PipelineFailed

    with open_scene(tmp_path / "broker", {"orders": 1}) as scene:
        scene.fill("orders", 0, 10)
        elsewhere = {"strandline.objects.url": f"file://{tmp_path}/elsewhere"}
        with pytest.raises(PipelineFailed, match="elsewhere is not a directory of this machine"):
            convert(scene, properties=elsewhere)
