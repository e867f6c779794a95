"""`strandline tiering run` as a process: how it ends if something is wrong, follows a topic, and is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from strandline.pipeline.client import TieringClient
from tests.broker import free_port
from tests.spark.scene import Scene, command, convert, descendants, is_alive, open_scene, process_state, run_command
from tests.spark.standalone import spark_environment
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


class TestWhatIsWrong:
    """A sentence and status 1, without a stack trace and before anything is claimed."""

    def test_a_wrong_master(self, tmp_path: Path) -> None:
        with open_scene(tmp_path / "broker", {"orders": 1}) as scene:
            bootstrap = ("--bootstrap", scene.broker.bootstrap, "--once")
            status, _, said = run_command(*bootstrap, "--master", "sparc://somewhere")
            assert status == 1
            assert said == (
                "strandline: --master sparc://somewhere is no address of Spark. It has one of these forms: local, "
                "local[4], local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT.\n"
            )
            nobody = f"spark://127.0.0.1:{free_port()}"
            status, _, said = run_command(*bootstrap, "--master", nobody)
            assert status == 1
            assert said.startswith(f"strandline: No Spark master answers at {nobody} (")
            assert said.count("\n") == 1

    def test_a_broker_that_is_away(self) -> None:
        nobody = f"127.0.0.1:{free_port()}"
        status, events, said = run_command("--once", "--bootstrap", nobody, "--timeout", "2")
        assert (status, events) == (1, [])
        assert said.startswith("strandline: No broker could describe the cluster within 2 s: ")
        assert nobody in said

    def test_once_or_follow_has_to_be_chosen(self) -> None:
        for wrong in ((), ("--once", "--follow")):
            status, _, said = run_command(*wrong)
            assert (status, said.partition(" (")[0]) == (1, "strandline: Say either --once")


def test_tasks_that_die_every_time_leave_nothing_behind(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The run says so and ends; the next one converts everything."""
    with open_scene(tmp_path / "broker", {"orders": 2}) as scene:
        for partition in range(2):
            scene.fill("orders", partition, 50)
        before = scene.log()
        options = ("--once", "--bootstrap", scene.broker.bootstrap, "--master", "local[2]")
        status, events, _ = run_command(*options, environment={"STRANDLINE_CRASH_AT": "tiering.split.after_write"})
        assert status == 1
        assert all("the process of a task died" in one for one in events[-1]["failing"])
        assert len(events[-1]["failing"]) == 2
        assert scene.status("orders").pending_split_files_count == 0

        request.getfixturevalue("spark")
        status, _ = convert(scene)
        assert status == 0
        assert scene.is_converted
        assert scene.log() == before


class Following:
    """A run with --follow, in a process of its own."""

    def __init__(self, scene: Scene, log: Path) -> None:
        self._log = log
        arguments = ("--json", "--no-ui", "--follow", "--bootstrap", scene.broker.bootstrap, "--master", "local[2]")
        with log.open("wb") as output:
            self.process = subprocess.Popen(command(*arguments), env=spark_environment(), stdout=output)
        wait_until(lambda: self.events("spark-started"), within=300, what="Spark to start")

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.endswith("}")]
        return [line for line in lines if line["event"] == name]


def _boundary(scene: Scene, partition: int) -> int:
    return scene.status("orders").partitions[partition].diskless_start_offset


def test_a_topic_is_followed_triggered_paused_and_resumed(tmp_path: Path) -> None:
    """Nothing is old enough, and the intervals are long: what happens, happens because somebody asks for it."""
    kept = {"orders": {"local.retention.ms": "-1"}}
    with (
        open_scene(tmp_path / "broker", {"orders": 2}, config=kept) as scene,
        TieringClient(scene.broker.bootstrap) as client,
    ):
        scene.fill("orders", 0, 50)
        following = Following(scene, tmp_path / "events")
        try:
            client.trigger("orders")
            wait_until(lambda: scene.is_converted, within=100, what="what was triggered")
            scene.fill("orders", 1, 50)
            client.pause("orders")
            client.trigger("orders")
            scene.fill("orders", 1, 7)  # came after the trigger
            client.resume("orders")
            wait_until(lambda: _boundary(scene, 1) > 0, within=100, what="what was triggered while paused")
            assert _boundary(scene, 1) == 50

            # The broker has it before the driver hears so.
            wait_until(lambda: len(following.events("segment")) == 2, what="the driver to know")
            children = descendants(following.process.pid)
            assert children
            following.process.send_signal(signal.SIGTERM)
            assert following.process.wait(60) == 0
            assert following.events("done")[-1]["segments"] == 2
            wait_until(lambda: not any(map(is_alive, children)), what="Spark's processes to end")
        finally:
            following.process.kill()
            following.process.wait()


def _suspended(pid: int) -> list[int]:
    return [child for child in descendants(pid) if process_state(child) == "T"]


def test_a_run_that_is_stopped_gives_back_what_it_has_claimed(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """While a task is suspended, the driver is told to stop: another driver does not wait for claims to expire."""
    with open_scene(tmp_path / "broker", {"orders": 1}) as scene:
        scene.fill("orders", 0, 50)
        environment = {**spark_environment(), "STRANDLINE_CRASH_AT": "stop@tiering.merge.before_upload"}
        options = ("--json", "--no-ui", "--once", "--bootstrap", scene.broker.bootstrap, "--master", "local[2]")
        suspended: list[int] = []
        with (tmp_path / "events").open("wb") as output:
            driver = subprocess.Popen(command(*options), env=environment, stdout=output)
        try:
            wait_until(lambda: _suspended(driver.pid), within=300, what="a task to be suspended in its merge")
            suspended = _suspended(driver.pid)
            driver.send_signal(signal.SIGINT)
            assert driver.wait(100) == 130
        finally:
            driver.kill()
            driver.wait()
            for pid in suspended:
                os.kill(pid, signal.SIGKILL)
        last = json.loads((tmp_path / "events").read_text().splitlines()[-1])
        assert (last["event"], last["was_stopped"], last["segments"]) == ("done", True, 0)

        # It is aborted; its bytes are deleted before the offsets can be merged again.
        request.getfixturevalue("spark")
        wait_until(lambda: convert(scene)[0] == 0 and scene.is_converted, within=100, what="the next run to merge")
        assert len(scene.log()["orders", 0]) == 50
