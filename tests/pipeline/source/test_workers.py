"""The Python of Spark's workers: it has to be one that can load the data source."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.workers import workers_with_strandline


@dataclass
class Context:
    """What a SparkContext says."""

    master: str | None = "local[*]"
    pythonExec: str = "python3"


def test_workers_on_this_machine_run_this_python_unless_somebody_named_another() -> None:
    context = Context()
    with workers_with_strandline(context):
        assert context.pythonExec == sys.executable
    assert context.pythonExec == "python3", "only the data source is concerned"
    named = Context(pythonExec=sys.executable)
    with workers_with_strandline(named):
        assert named.pythonExec == sys.executable


def test_a_named_python_without_strandline_is_refused_with_what_to_set(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    for named in (str(bare), str(tmp_path / "nothing")):
        refused = pytest.raises(SourceFailed, match=f"set PYSPARK_PYTHON={sys.executable}")
        with refused, workers_with_strandline(Context(pythonExec=named)):
            pytest.fail("it was registered")


def test_another_python_that_can_load_it_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    context = Context(pythonExec=str(other))
    with workers_with_strandline(context):
        assert context.pythonExec == str(other)


def test_on_a_cluster_the_log_says_what_to_set_if_nobody_named_it(caplog: pytest.LogCaptureFixture) -> None:
    with workers_with_strandline(Context(master="spark://there:7077", pythonExec="/opt/python")):
        assert not caplog.records
    context = Context(master="spark://there:7077")
    with workers_with_strandline(context):
        assert context.pythonExec == "python3"
    assert "PYSPARK_PYTHON" in caplog.text
