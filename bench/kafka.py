"""Apache Kafka on this machine: fetched once from Maven Central, one combined KRaft node, default settings.

Needs `java` (17 or newer) and, the first time, `mvn`; `why_unavailable` says in a sentence what is missing. Only the
standard library is imported, so that the interop suites can use this module too:

    libraries = kafka.install(cache)                          # ~60 MB below .cache, a few seconds, once
    with kafka.KafkaBroker(libraries, data_dir) as broker:    # formats the directory when it is new
        broker.bootstrap                                      # "127.0.0.1:PORT", answers requests
        kafka.run_tool(libraries, kafka.DUMP_LOG, "--files", "...")
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.probe import is_answering
from bench.process import ProcessFailed, ServerProcess, free_port

VERSION: Final = "4.3.1"
CLUSTER_ID: Final = "c3RyYW5kbGluZS1iZW5jaA"

MAIN: Final = "kafka.Kafka"
STORAGE_TOOL: Final = "kafka.tools.StorageTool"
DUMP_LOG: Final = "org.apache.kafka.tools.DumpLogSegments"
PRODUCER_PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE: Final = "org.apache.kafka.tools.ConsumerPerformance"

# What kafka-server-start and kafka-run-class pass to the JVM when nothing is configured.
_SERVER_JVM: Final = (
    "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip

_DEPENDENCIES: Final = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)

_LOGGING: Final = """\
status = warn
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.stdout.ref = stdout
"""


def default_cache() -> Path:
    """Where the jars go unless told otherwise: .cache of this repository, which git ignores."""
    return Path(__file__).resolve().parent.parent / ".cache"


def why_unavailable(cache: Path | None = None) -> str | None:
    """A sentence naming what is missing to run Apache Kafka here, or None when nothing is."""
    if shutil.which("java") is None:
        return "Apache Kafka needs Java 17 or newer, and no `java` is on the path."
    if not _is_complete(_libraries(cache)) and shutil.which("mvn") is None:
        return "Apache Kafka is fetched with Maven the first time, and no `mvn` is on the path."
    return None


def install(cache: Path | None = None) -> Path:
    """The directory with all jars; fetches them when they are not there yet. Raises ProcessFailed."""
    libraries = _libraries(cache)
    if not _is_complete(libraries):
        libraries.mkdir(parents=True, exist_ok=True)
        pom = libraries.parent / "pom.xml"
        pom.write_text(_pom())
        fetch = ("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime")
        run = subprocess.run([*fetch, f"-DoutputDirectory={libraries}"], capture_output=True, text=True)
        if run.returncode != 0:
            raise ProcessFailed(
                f"Maven could not fetch Apache Kafka {VERSION}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
            )
        for level in ("info", "warn"):
            (libraries / f"log4j2-{level}.properties").write_text(_LOGGING.format(level=level))
        (libraries / "complete").touch()
    return libraries


def java_command(libraries: Path, main_class: str, *arguments: str, jvm: tuple[str, ...] = ("-Xmx512M",)) -> list[str]:
    """The command line that runs one of Kafka's main classes."""
    level = "info" if main_class == MAIN else "warn"
    logging = f"-Dlog4j2.configurationFile={libraries / f'log4j2-{level}.properties'}"
    return ["java", *jvm, logging, "-cp", f"{libraries}/*", main_class, *arguments]


def run_tool(
    libraries: Path, main_class: str, *arguments: str, timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools to its end. The caller judges the return code."""
    command = java_command(libraries, main_class, *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


class KafkaBroker:
    """One broker that is its own controller. A block: inside it the broker answers, leaving it stops it cleanly.

    A directory that is not formatted yet is formatted. The same directory may be started again later, on other ports.
    """

    def __init__(
        self,
        libraries: Path,
        data_dir: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self.libraries, self.data_dir = libraries, data_dir
        self.port = port or free_port()
        self._controller_port = free_port()
        self._settings = dict(settings or {})
        self._start_timeout = start_timeout
        self._process: ServerProcess | None = None
        self.start_seconds = 0.0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def process(self) -> ServerProcess:
        if self._process is None:
            raise ProcessFailed("Kafka is not running")
        return self._process

    def format(self) -> None:
        """Prepare the data directory and the settings file. Needed once; a formatted directory is left as it is."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._properties_file.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        if (self.data_dir / "meta.properties").exists():
            return
        formatting = ("format", "-t", CLUSTER_ID, "-c", str(self._properties_file))
        run = run_tool(self.libraries, STORAGE_TOOL, *formatting)
        if run.returncode != 0:
            raise ProcessFailed(f"Kafka's storage tool refused {self.data_dir}:\n{run.stdout}{run.stderr}")

    def start(self, *, led_partitions: int = 0) -> float:
        """Format if needed, start, wait until it answers and leads so many partitions. Seconds since exec."""
        self.format()
        command = java_command(self.libraries, MAIN, str(self._properties_file), jvm=_SERVER_JVM)
        log_file = self.data_dir.with_name(self.data_dir.name + ".log")
        self._process = ServerProcess(command, log_file=log_file, name="kafka")
        self.start_seconds = self._process.wait_until(
            lambda: is_answering("127.0.0.1", self.port, led_partitions=led_partitions),
            timeout=self._start_timeout,
            what="to answer a client",
        )
        return self.start_seconds

    def stop(self) -> float:
        """Stop cleanly; seconds it took. Harmless when it does not run."""
        if self._process is None:
            return 0.0
        process, self._process = self._process, None
        return process.stop(timeout=60.0)

    def __enter__(self) -> KafkaBroker:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _properties_file(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".properties")

    def _properties(self) -> dict[str, str]:
        """A node as the shipped server.properties makes it: a cluster of one needs internal topics with one replica."""
        controller = f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self._settings,
        }


def _libraries(cache: Path | None) -> Path:
    return (cache or default_cache()) / f"kafka-{VERSION}" / "libs"


def _is_complete(libraries: Path) -> bool:
    return (libraries / "complete").exists()


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        for group, artifact, version in _DEPENDENCIES
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>strandline</groupId><artifactId>bench-kafka</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )
