"""A real Spark cluster on this machine: a master and workers, as processes that end with the block."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from strandline.pipeline.java import find_java
from tests.broker import free_port
from tests.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """Where it is, and what it says."""

    master: str
    log: Path
    workers: tuple[int, ...]
    """Process ids."""


def spark_environment() -> dict[str, str]:
    """The environment for programs of Spark: our Java, our Python, no proxies in between."""
    return {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def standalone_cluster(directory: Path, *, workers: int = 2) -> Iterator[StandaloneCluster]:
    """A cluster with one core for each worker."""
    directory.mkdir(parents=True, exist_ok=True)
    port, log = free_port(), directory / "cluster.log"
    master = f"spark://127.0.0.1:{port}"
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.append(_start(log, "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"))
        wait_until(lambda: _accepts(port), within=200, what=f"a master at {master}")
        for number in range(workers):
            place = str(directory / f"worker-{number}")
            options = ("--cores", "1", "--memory", "700m", "--work-dir", place, "--webui-port", "0", master)
            processes.append(_start(log, "worker.Worker", "--host", "127.0.0.1", *options))
        said = "Successfully registered with master"
        wait_until(lambda: log.read_text(errors="replace").count(said) == workers, within=200, what="the workers")
        yield StandaloneCluster(master, log, tuple(process.pid for process in processes[1:]))
    finally:
        for process in processes:
            # Executors are in the process group of their worker.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(log: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    settings = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-Dspark.log.level=INFO"}
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env={**spark_environment(), **settings},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
