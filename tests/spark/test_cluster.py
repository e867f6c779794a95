"""The pipeline on a real standalone cluster: a master and two workers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from strandline.pipeline.packaging import make_package
from tests.spark.scene import open_scene, run_command
from tests.spark.standalone import SPARK_HOME, spark_environment, standalone_cluster

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

_SMALL = ("--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false")
# Every task is started twice, as far as there are cores, however short it is.
_SPECULATION = (
    *("--conf", "spark.speculation=true"),
    *("--conf", "spark.speculation.interval=10ms"),
    *("--conf", "spark.speculation.quantile=0.01"),
    *("--conf", "spark.speculation.multiplier=1.01"),
    *("--conf", "spark.speculation.minTaskRuntime=1ms"),
)


def test_a_cluster_converts_with_speculation_and_as_a_submitted_program(tmp_path: Path) -> None:
    with (
        standalone_cluster(tmp_path / "cluster") as cluster,
        open_scene(tmp_path / "broker", {"orders": 3}) as scene,
    ):
        for turn in range(3):
            for partition in range(3):
                scene.fill("orders", partition, 60, note=f"{turn} ")
        before = scene.log()
        options = ("--once", "--bootstrap", scene.broker.bootstrap)
        status, events, said = run_command(*options, "--master", cluster.master, *_SMALL, *_SPECULATION, within=400)
        assert status == 0, said
        assert scene.is_converted
        assert scene.log() == before
        assert events[-1]["bytes_merged"] == sum(path.stat().st_size for path in scene.segments("orders"))

        scene.fill("orders", 0, 60, note="submitted ")
        more = scene.log()
        package = make_package(tmp_path / "package")
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.master, *_SMALL]
        program = ["--py-files", str(package.archive), str(package.program), "--json", *options]
        done = subprocess.run(
            [*submit, *program], env=spark_environment(), capture_output=True, text=True, timeout=400, check=False
        )
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert lines[-1]["segments"] == 1
        assert scene.is_converted
        assert scene.log() == more


def test_a_cluster_without_workers_is_a_sentence(tmp_path: Path) -> None:
    with (
        standalone_cluster(tmp_path / "cluster", workers=0) as cluster,
        open_scene(tmp_path / "broker", {"orders": 1}) as scene,
    ):
        options = ("--once", "--bootstrap", scene.broker.bootstrap, "--master", cluster.master, "--start-timeout", "20")
        status, _, said = run_command(*options)
        assert status == 1
        assert f"No executor of {cluster.master} has taken a task within 20 s." in said
        assert "Traceback" not in said
