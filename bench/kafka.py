"""Apache Kafka on this machine: fetched once from Maven Central, one combined KRaft node, default settings.

Needs `java` (17 or newer) and, the first time, `mvn`; `why_unavailable` says in a sentence what is missing. Only the
standard library is imported, so that the interop suites can use this module too:

    libraries = kafka.install(cache)                          # ~60 MB below .cache, a few seconds, once
    with kafka.KafkaBroker(libraries, data_dir) as broker:    # formats the directory when it is new
        broker.bootstrap                                      # "127.0.0.1:PORT", answers requests
        kafka.run_tool(libraries, kafka.DUMP_LOG, "--files", "...")

Kafka has no remote storage of its own but for its tests, the directory of LocalTieredStorage. A broker has it with

    plugins = kafka.install_tiered_storage()
    kafka.KafkaBroker(libraries, data_dir, plugins=plugins, settings=kafka.tiered_settings(directory))
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
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

_TIERED_STORAGE: Final = (("org.apache.kafka", "kafka-storage", VERSION, "test"),)
_LOCAL_TIERED_STORAGE: Final = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"

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


def why_unavailable(cache: Path | None = None, *, with_tiered_storage: bool = False) -> str | None:
    """A sentence naming what is missing to run Apache Kafka here, or None when nothing is."""
    if shutil.which("java") is None:
        return "Apache Kafka needs Java 17 or newer, and no `java` is on the path."
    needed = [_libraries(cache), _plugins(cache)] if with_tiered_storage else [_libraries(cache)]
    if not all(_is_complete(directory) for directory in needed) and shutil.which("mvn") is None:
        return "Apache Kafka is fetched with Maven the first time, and no `mvn` is on the path."
    return None


def is_installed(cache: Path | None = None) -> bool:
    """Whether the jars are there, so that `install` fetches nothing."""
    return _is_complete(_libraries(cache))


def install(cache: Path | None = None) -> Path:
    """The directory with all jars; fetches them when they are not there yet. Raises ProcessFailed."""
    libraries = _libraries(cache)
    if not _is_complete(libraries):
        fetch(_DEPENDENCIES, libraries, with_theirs=True)
        for level in ("info", "warn"):
            (libraries / f"log4j2-{level}.properties").write_text(_LOGGING.format(level=level))
        (libraries / "complete").touch()
    return libraries


def install_tiered_storage(cache: Path | None = None) -> Path:
    """The directory with LocalTieredStorage, one jar; fetches it when it is not there yet. Raises ProcessFailed."""
    plugins = _plugins(cache)
    if not _is_complete(plugins):
        fetch(_TIERED_STORAGE, plugins, with_theirs=False)
        (plugins / "complete").touch()
    return plugins


def tiered_settings(directory: Path) -> dict[str, str]:
    """Settings of a broker that keeps closed segments of tiered topics below `directory`/kafka-tiered-storage."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _LOCAL_TIERED_STORAGE,
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rsm.config.dir": str(directory),
        "rsm.config.delete.on.close": "false",
    }


def fetch(dependencies: Sequence[tuple[str, ...]], directory: Path, *, with_theirs: bool) -> None:
    """Have Maven put jars into a directory, `with_theirs` those that they depend on as well. Raises ProcessFailed."""
    directory.mkdir(parents=True, exist_ok=True)
    pom = directory.with_name(f"{directory.name}-pom.xml")
    pom.write_text(_pom(dependencies))
    fetch = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    fetch += [f"-DoutputDirectory={directory}", f"-DexcludeTransitive={str(not with_theirs).lower()}"]
    run = subprocess.run(fetch, capture_output=True, text=True)
    if run.returncode != 0:
        raise ProcessFailed(f"Maven could not fetch Apache Kafka {VERSION}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def java_command(
    libraries: Path,
    main_class: str,
    *arguments: str,
    jvm: tuple[str, ...] = ("-Xmx512M",),
    plugins: Path | None = None,
) -> list[str]:
    """The command line that runs one of Kafka's main classes. `plugins` is a directory with more jars."""
    level = "info" if main_class == MAIN else "warn"
    logging = f"-Dlog4j2.configurationFile={libraries / f'log4j2-{level}.properties'}"
    class_path = f"{libraries}/*" if plugins is None else f"{libraries}/*:{plugins}/*"
    return ["java", *jvm, logging, "-cp", class_path, main_class, *arguments]


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
        plugins: Path | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self.libraries, self.data_dir, self._plugins = libraries, data_dir, plugins
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
    def log_dir(self) -> Path:
        """Where its partitions are."""
        return self.data_dir

    @property
    def process(self) -> ServerProcess:
        if self._process is None:
            raise ProcessFailed("Kafka is not running.")
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
        settings = str(self._properties_file)
        command = java_command(self.libraries, MAIN, settings, jvm=_SERVER_JVM, plugins=self._plugins)
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

    def kill(self) -> None:
        """End it with SIGKILL. `start` starts it again on the same ports."""
        self.process.kill()
        self._process = None

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


def _plugins(cache: Path | None) -> Path:
    return _libraries(cache).with_name("tiered-storage")


def _is_complete(libraries: Path) -> bool:
    return (libraries / "complete").exists()


def _pom(dependencies: Sequence[tuple[str, ...]]) -> str:
    listed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{''.join(f'<classifier>{one}</classifier>' for one in classifier)}</dependency>"
        for group, artifact, version, *classifier in dependencies
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>strandline</groupId><artifactId>bench-kafka</artifactId><version>1</version>"
        f"<dependencies>{listed}</dependencies></project>\n"
    )
