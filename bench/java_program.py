"""Programs of this repository in Java: compiled against Kafka's jars, and run beside them.

The Eclipse compiler from Maven Central compiles them: a machine that runs Kafka may have no compiler of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import kafka
from bench.generator import Answer, LoadFailed
from bench.process import ProcessFailed

_PATIENCE_SECONDS: Final = 120.0

_COMPILER: Final = (("org.eclipse.jdt", "ecj", "3.39.0"),)
_COMPILER_MAIN: Final = "org.eclipse.jdt.internal.compiler.batch.Main"


@dataclass(frozen=True, slots=True)
class JavaProgram:
    """A compiled program."""

    libraries: Path
    directory: Path
    main_class: str

    def command(self, *arguments: str, jvm: tuple[str, ...] = ("-Xmx512M",)) -> list[str]:
        return kafka.java_command(self.libraries, self.main_class, *arguments, jvm=jvm, plugins=self.directory)

    def measure(self, options: Mapping[str, str | int]) -> Answer:
        """Run it to its end; the JSON object that it prints last. Raises LoadFailed: no figure after a failure."""
        command = self.command(*(f"{name}={value}" for name, value in options.items()))
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise LoadFailed(f"{self.main_class} {options} did not end within {_PATIENCE_SECONDS:g} s.") from None
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        if run.returncode != 0 or not lines:
            raise LoadFailed(f"{self.main_class} {options} failed:\n{run.stdout[-1000:]}{run.stderr[-1000:]}")
        answer: Answer = json.loads(lines[-1])
        return answer


def why_unavailable(cache: Path | None = None) -> str | None:
    """A sentence naming what is missing to compile and run one here, or None when nothing is."""
    missing = kafka.why_unavailable(cache)
    if missing is None and not _is_complete(_compiler(cache)) and shutil.which("mvn") is None:
        return "A Java compiler is fetched with Maven the first time, and no `mvn` is on the path."
    return missing


def build(source: Path, cache: Path | None = None, *, more_libraries: tuple[tuple[str, ...], ...] = ()) -> JavaProgram:
    """Compile a source file, with those beside it that it needs. `more_libraries` are fetched the first time.

    Raises ProcessFailed.
    """
    libraries = kafka.install(cache)
    compiler = _fetched(_COMPILER, _compiler(cache))
    directory = libraries.with_name(source.stem)
    directory.mkdir(exist_ok=True)
    if more_libraries:
        _fetched(more_libraries, directory)
    classes = directory / "classes"
    jar = directory / f"{source.stem}.jar"
    jar.unlink(missing_ok=True)
    class_path = ":".join(str(one) for one in sorted([*libraries.glob("*.jar"), *directory.glob("*.jar")]))
    found_in = ("-classpath", class_path, "-sourcepath", str(source.parent))
    arguments = ("-17", "-proc:none", "-nowarn", *found_in, "-d", str(classes), str(source))
    command = kafka.java_command(libraries, _COMPILER_MAIN, *arguments, plugins=compiler)
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise ProcessFailed(f"{source.name} was not compiled:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    with zipfile.ZipFile(jar, "w") as packed:
        for path in sorted(classes.rglob("*.class")):
            packed.write(path, path.relative_to(classes))
    return JavaProgram(libraries, directory, source.stem)


def _fetched(dependencies: tuple[tuple[str, ...], ...], directory: Path) -> Path:
    if not _is_complete(directory):
        kafka.fetch(dependencies, directory, with_theirs=False)
        (directory / "complete").touch()
    return directory


def _compiler(cache: Path | None) -> Path:
    return (cache or kafka.default_cache()) / f"kafka-{kafka.VERSION}" / "compiler"


def _is_complete(directory: Path) -> bool:
    return (directory / "complete").exists()
