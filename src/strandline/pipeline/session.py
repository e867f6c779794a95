"""Spark for a run: on this machine, on a cluster, or the one that spark-submit has started.

Spark's JVM writes to a file instead of the terminal. What goes wrong is a sentence, within a bounded time.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from strandline.crash import ENVIRONMENT_VARIABLE as CRASH_AT
from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.java import find_java
from strandline.pipeline.packaging import make_package

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

T = TypeVar("T")

APPLICATION: Final = "Strandline tiering"
LOCAL: Final = "local[*]"
START_SECONDS: Final = 120.0
_LOCAL: Final = re.compile(r"local(\[(\*|\d+)(\s*,\s*\d+)?\])?|local-cluster\[.*\]")
_STANDALONE: Final = "spark://"
_CLUSTERS: Final = ("yarn", "k8s://")
_FORMS: Final = "local, local[4], local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT"
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that spark-submit has started."""
_STOP_SECONDS: Final = 10.0
_TAIL_BYTES: Final = 65536
# Both are for the machine on which the driver and all tasks run.
_LOCAL_CONF: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Half the cost of a task that does little; versions of Spark that do not know it ignore it.
    "spark.python.unix.domain.socket.enabled": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Which Spark to use, and how."""

    master: str | None = LOCAL
    """None: as spark-submit or spark-defaults.conf say."""
    has_ui: bool = True
    """Spark's web page, on port 4040 or the next free one."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings; they win over ours."""
    start_seconds: float = START_SECONDS
    """How long Spark may take to start, and a cluster to give the application its first executor."""


@contextmanager
def open_session(options: SparkOptions | None = None) -> Iterator[SparkSession]:
    """A session for the length of the block. One that the program has already is used, and stays.

    Raises PipelineFailed with a sentence.
    """
    wish = options or SparkOptions()
    if find_spec("pyspark") is None:
        raise PipelineFailed("PySpark is not installed: pip install 'strandline[spark]'.")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        yield SparkSession.builder.getOrCreate()
        return
    _check_master(wish.master, wish.start_seconds)
    if _GATEWAY in os.environ:
        # The JVM runs already, with the master and the memory that spark-submit was given.
        with _within(wish, lambda: _submitted(wish), give_up=lambda: None) as session:
            yield session
        return
    home = find_java().home
    os.environ["JAVA_HOME"] = str(home)
    if is_local(wish.master):
        # Otherwise tasks run in whatever python3 is first on the PATH, which has no strandline.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with (
        tempfile.TemporaryDirectory(prefix="strandline-spark-") as directory,
        open(Path(directory) / "spark.log", "w+b") as log,
    ):
        jvm = _Jvm(log)
        try:
            with _within(wish, lambda: jvm.start(_conf(wish)), give_up=jvm.kill) as session:
                if not is_local(wish.master):
                    # Executors get the code of this program, from here: both sides are of one version.
                    session.sparkContext.addPyFile(str(make_package(Path(directory)).archive))
                yield session
        finally:
            jvm.stop()


def is_local(master: str | None) -> bool:
    """Whether tasks run on this machine, in processes of this Python."""
    return master is not None and _LOCAL.fullmatch(master) is not None


class _Jvm:
    """The Java process that Spark's driver lives in."""

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        self._gateway: Any = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, conf: SparkConf) -> SparkContext:
        from pyspark import SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        # In a process group of its own: Ctrl-C is for us, and we end it when we are done with the stores.
        quiet = {"stdout": self._log, "stderr": self._log, "start_new_session": True}
        try:
            self._gateway = launch_gateway(conf, quiet)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            reason = self._last_words()
            raise PipelineFailed(f"Spark's Java process has ended while it started: {reason}") from error
        self._process = self._gateway.proc
        return SparkContext(conf=conf, gateway=self._gateway)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """End the process; another session of this program starts a new one."""
        if self._gateway is None or self._process is None:
            return
        from pyspark import SparkContext

        with SparkContext._lock:
            SparkContext._gateway = SparkContext._jvm = None
        self._gateway.shutdown()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()  # its sign to leave
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_words(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _TAIL_BYTES))
        return _reason(self._log.read().decode(errors="replace")) or "it said nothing."


@contextmanager
def _within(
    wish: SparkOptions, start: Callable[[], SparkContext], give_up: Callable[[], None]
) -> Iterator[SparkSession]:
    """The session, stopped at the end of the block. Errors of its start are sentences."""
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    where = wish.master or "the cluster"
    try:
        context = before_deadline(start, wish.start_seconds)
        if context is None:
            give_up()
            raise PipelineFailed(f"Spark on {where} has not started within {wish.start_seconds:.0f} s.")
        if context._jsc.sc().isStopped():
            raise PipelineFailed(f"Spark on {where} has stopped while it started: no master answers there.")
        context.setLogLevel("WARN")
        session = SparkSession(context)
    except Py4JError as error:
        reason = _reason(str(error)) or type(error).__name__
        raise PipelineFailed(f"Spark on {where} does not start: {reason}") from error
    try:
        yield session
    finally:
        with suppress(Py4JError, OSError):  # it may have died before us
            session.stop()


def before_deadline(work: Callable[[], T], seconds: float) -> T | None:
    """What `work`, run in a thread, returns or raises; None if that takes longer, and then its result is dropped."""
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            failure.append(error)

    thread = threading.Thread(target=run, name="spark-start", daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    return result[0] if result else None


def _submitted(wish: SparkOptions) -> SparkContext:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf()
    if not conf.contains("spark.app.name") or conf.get("spark.app.name") in (None, "submit.py"):
        conf.setAppName(APPLICATION)
    for name, value in wish.conf.items():
        conf.set(name, value)
    return SparkContext.getOrCreate(conf)


def _conf(wish: SparkOptions) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf().setAppName(APPLICATION)
    settings = {
        "spark.ui.enabled": str(wish.has_ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        **(_LOCAL_CONF if is_local(wish.master) else {}),
    }
    if wish.master is not None:
        settings["spark.master"] = wish.master
    if place := os.environ.get(CRASH_AT):
        settings[f"spark.executorEnv.{CRASH_AT}"] = place
    return conf.setAll(list({**settings, **wish.conf}.items()))


def _check_master(master: str | None, seconds: float) -> None:
    """What can be known without starting Spark, which would try for a minute and then print a stack trace."""
    if master is None or is_local(master) or master.startswith(_CLUSTERS):
        return
    if not master.startswith(_STANDALONE):
        raise PipelineFailed(f"--master {master} is no address of Spark. It has one of these forms: {_FORMS}.")
    reasons = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdigit():
            raise PipelineFailed(f"--master {master} is no address of Spark: {address!r} is not HOST:PORT.")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=min(seconds, 10.0)).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise PipelineFailed(
        f"No Spark master answers at {master} ({'; '.join(reasons)}). Does it run, and is this its port?"
    )


def _reason(text: str) -> str:
    """The sentence in a stack trace: what its innermost cause says."""
    causes = re.findall(
        r"^(?:Caused by: |: |Exception in thread .*? |Error: )?(?:[\w.$]+(?:Exception|Error): )(.+)$", text, re.M
    )
    said = causes[-1] if causes else next((line for line in text.splitlines() if line.startswith("Error: ")), "")
    said = said.strip()
    return said if not said or said.endswith((".", "!", "?")) else f"{said}."
