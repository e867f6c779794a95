"""A program in a virtual environment that was not activated: `python3` on the PATH is another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.pipeline.java import find_java
from tests.broker import running_broker
from tests.clients.tiering import create, numbered, produce
from tests.spark.scene import MASTER

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from strandline.tiering import register

session = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false").getOrCreate()
register(session)
found = session.read.format("strandline").option("bootstrap", sys.argv[2]).option("topic", "t").load()
print("read", found.count())
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_workers_run_the_python_of_the_program(tmp_path: Path) -> None:
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text("#!/bin/sh\necho No module named strandline >&2\nexit 1\n")
    bare.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bare.parent}{os.pathsep}{os.environ['PATH']}",
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_PYTHON", None)
    with running_broker(tmp_path / "data") as broker:
        with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            create(admin, "t", {})
        produce(broker, "t", numbered(0, 10))
        program = [sys.executable, "-c", PROGRAM, MASTER, broker.bootstrap]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert "read 10" in done.stdout, done.stderr
