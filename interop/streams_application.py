"""The Kafka Streams program of the suite `streams`: a process that can be killed and started again."""

from __future__ import annotations

from pathlib import Path

from bench import java_program, kafka
from bench.java_program import JavaProgram
from bench.process import ServerProcess

SOURCE = Path(__file__).resolve().parent / "java" / "WordCount.java"
APPLICATION_ID = "word-count"
CHANGELOG = f"{APPLICATION_ID}-counts-changelog"

_LIBRARIES = (("org.apache.kafka", "kafka-streams", kafka.VERSION), ("org.rocksdb", "rocksdbjni", "10.1.3"))
_JVM = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def build() -> JavaProgram:
    """Fetch Kafka Streams and compile the program. Raises ProcessFailed."""
    return java_program.build(SOURCE, more_libraries=_LIBRARIES)


class WordCount:
    """The running program. Whoever kills it starts it again with `start`, on the same state directory."""

    def __init__(
        self, program: JavaProgram, bootstrap: str, state: Path, source: str, sink: str, log_file: Path
    ) -> None:
        self._command = program.command(bootstrap, str(state), source, sink, jvm=_JVM)
        self._log_file = log_file
        self._process: ServerProcess | None = None

    @property
    def is_running(self) -> bool:
        """False after it ended by itself, which it does only at a fatal error."""
        return self._process is not None and self._process.is_running

    def start(self) -> None:
        self._process = ServerProcess(self._command, log_file=self._log_file, name=APPLICATION_ID)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def __enter__(self) -> WordCount:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stop()
