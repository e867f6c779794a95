"""Processes of a run on real Spark are killed: Spark repeats tasks, and the next run goes on where a driver died."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.spark.scene import command, convert, descendants, is_alive, open_scene, run_command
from tests.spark.standalone import spark_environment
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

SIGKILLED = -9
QUICK = {"inkless.tiering.splitter.claim.duration.ms": "3000"}


def test_tasks_that_die_are_repeated_by_spark(tmp_path: Path) -> None:
    """Each worker process dies when it comes to this place for the second time; Spark repeats its task in another."""
    with open_scene(tmp_path / "broker", {"orders": 3}) as scene:
        for turn in range(2):
            for partition in range(3):
                scene.fill("orders", partition, 40, note=f"{turn} ")
        before = scene.log()
        options = ("--once", "--bootstrap", scene.broker.bootstrap, "--master", "local[1,4]")
        dying = {"STRANDLINE_CRASH_AT": "tiering.merge.after_upload:2"}
        status, events, said = run_command(*options, environment=dying)
        assert status == 0, said
        assert scene.is_converted
        assert scene.log() == before
        assert events[-1]["bytes_merged"] == sum(path.stat().st_size for path in scene.segments("orders"))


def test_a_driver_is_killed_while_a_task_runs(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with open_scene(tmp_path / "broker", {"orders": 2}, settings=QUICK) as scene:
        for partition in range(2):
            scene.fill("orders", partition, 50)
        before = scene.log()
        environment = {**spark_environment(), "STRANDLINE_CRASH_AT": "stop@tiering.merge.after_upload"}
        options = ("--json", "--no-ui", "--once", "--bootstrap", scene.broker.bootstrap, "--master", "local[2]")
        with (tmp_path / "events").open("wb") as output:
            driver = subprocess.Popen(command(*options), env=environment, stdout=output)
        try:
            said = lambda: '"merge-started"' in (tmp_path / "events").read_text()  # noqa: E731
            wait_until(said, within=300, what="the merge to start")
            wait_until(lambda: scene.segments("orders"), within=100, what="bytes of a segment")
            children = descendants(driver.pid)
        finally:
            driver.kill()
            assert driver.wait() == SIGKILLED
        wait_until(lambda: not any(map(is_alive, children)), within=60, what="Spark's processes to end")
        assert scene.log() == before

        request.getfixturevalue("spark")
        wait_until(lambda: convert(scene)[0] == 0 and scene.is_converted, within=100, what="the next run to finish")
        assert scene.log() == before
