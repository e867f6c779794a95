"""The load generator: compiled from bench/loadgen on first use, run as a child process, its JSON line read back."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

_SOURCES: Final = Path(__file__).resolve().parent / "loadgen"
_FLAGS: Final = ("-O2", "-std=gnu11", "-Wall", "-Wextra")

Answer = dict[str, Any]


class LoadFailed(RuntimeError):
    """The generator could not be built, or a run of it failed. The text holds its output."""


def find_library() -> Path:
    """The librdkafka that ships inside the wheel of confluent-kafka. Raises LoadFailed."""
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise LoadFailed("The load generator needs the confluent-kafka package: run `make setup`.")
    site = Path(spec.origin).parent.parent
    for library in sorted(site.glob("confluent_kafka*.libs/librdkafka*.so*")):
        return library
    raise LoadFailed(f"The confluent-kafka package in {site} ships no librdkafka of its own.")


class Generator:
    """Runs the modes of the load generator. A failure is an exception: no figure without all records."""

    def __init__(self, program: Path) -> None:
        self._program = program

    @classmethod
    def build(cls, cache: Path) -> Generator:
        """Compile it, unless the same sources were compiled against the same library before."""
        library = find_library()
        sources = sorted(_SOURCES.glob("*.[ch]"))
        digest = hashlib.sha256(str(library).encode())
        for source in sources:
            digest.update(source.read_bytes())
        program = cache / "bench" / f"loadgen-{digest.hexdigest()[:16]}"
        if not program.exists():
            compiler = shutil.which(os.environ.get("CC", "cc"))
            if compiler is None:
                raise LoadFailed("The load generator is written in C: install a C compiler (cc).")
            program.parent.mkdir(parents=True, exist_ok=True)
            partial = program.with_suffix(f".{os.getpid()}")
            units = [str(source) for source in sources if source.suffix == ".c"]
            links = [str(library), f"-Wl,-rpath,{library.parent}", "-lpthread", "-lm"]
            run = subprocess.run(
                [compiler, *_FLAGS, "-o", str(partial), *units, *links], capture_output=True, text=True
            )
            if run.returncode != 0:
                raise LoadFailed(f"The load generator does not compile:\n{run.stderr}")
            partial.rename(program)
        return cls(program)

    def run(self, mode: str, **options: str | int) -> Answer:
        """Run one mode to its end."""
        return self.start(mode, **options).wait()

    def start(self, mode: str, **options: str | int) -> Load:
        """Run one mode in the background. Names of librdkafka's settings are given as `rd_linger_ms="5"`."""
        return Load([str(self._program), mode, *(f"{_option(name)}={value}" for name, value in options.items())])


class Load:
    """One run of the generator."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def stop(self) -> Answer:
        """Ask it to finish early; what it measured until then."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout: float = 300.0) -> Answer:
        try:
            output, errors = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise LoadFailed(f"{' '.join(self._command)} did not end within {timeout:g} s.") from None
        if self._process.returncode != 0:
            raise LoadFailed(f"{' '.join(self._command)}: {errors[-1000:]}")
        answer: Answer = json.loads(output)
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def _option(name: str) -> str:
    return f"rd.{name[3:].replace('_', '.')}" if name.startswith("rd_") else name
