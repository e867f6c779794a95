"""librdkafka's own test runner, built from the sources that the npm package node-rdkafka carries."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

from bench import kafka

from interop.broker import CACHE, Target, strandline
from interop.results import Outcome

NAME = "librdkafka"
PACKAGE = "node-rdkafka@3.6.1"  # librdkafka 2.12.0

SECONDS_PER_TEST = 150
SECONDS_PER_TEST_IN_FULL = 400
# -L: no tests that need no broker; -p1: one at a time. -Q: less data, fewer rounds, and fewer subtests.
OPTIONS = ("-L", "-p1")
BROKER_VERSION = "4.0.0"
SCENARIO = "noautocreate"
SCENARIO_TESTS = ("0045-subscribe_update", "0107-topic_recreate", "0111-delay_create_topics")

_SUMMARY = re.compile(r"^\|\s+(\d{4}_\w+)\s+\|\s+(PASSED|FAILED|SKIPPED)")
_NOTHING_DONE = re.compile(r"\d{4}_\w+: duration 0\.0\d+ms")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def why_unavailable() -> str | None:
    missing = [tool for tool in ("npm", "make", "gcc", "g++") if shutil.which(tool) is None]
    return f"librdkafka's tests need {', '.join(missing)}." if missing else None


def prepare() -> Path:
    """The directory with the built test runner."""
    source = CACHE / PACKAGE.replace("@", "-")
    tests = source / "tests"
    if not (tests / "test-runner").exists():
        shutil.rmtree(source, ignore_errors=True)
        _unpack(source)
        with (CACHE / "librdkafka-build.log").open("wb") as log:
            for command in (
                ["./configure", "--disable-gssapi"],
                ["make", "libs"],
                ["make", "-C", "tests", "test-runner"],
            ):
                subprocess.run(command, cwd=source, check=True, stdout=log, stderr=subprocess.STDOUT)
    return tests


def _unpack(target: Path) -> None:
    """Fetch the package and keep the library that is inside it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=CACHE, check=True, capture_output=True, text=True)
    archive = CACHE / packed.stdout.split()[-1]
    inside = "package/deps/librdkafka/"
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if member.name.startswith(inside)]
        for member in members:
            member.name = member.name.removeprefix(inside)
        tar.extractall(target, members, filter="tar")
    archive.unlink()


def _kafka_home() -> Path:
    """A directory with the one script of Kafka's that some tests call to create topics."""
    script = CACHE / "kafka-home" / "bin" / "kafka-topics.sh"
    script.parent.mkdir(parents=True, exist_ok=True)
    command = kafka.java_command(kafka.install(), "org.apache.kafka.tools.TopicCommand", jvm=("-Xmx128M",))
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o755)
    return script.parent.parent


def run(target: Target, only: str | None = None, *, group_protocol: str = "classic") -> dict[str, Outcome]:
    """Run every test of the suite in a process of its own, or those whose numbers begin with `only`."""
    tests = prepare()
    logs = CACHE / f"{target.run_name}-logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    chosen = sorted(
        path.stem for path in tests.glob("0[0-9][0-9][0-9]-*.c*") if only is None or path.stem.startswith(only)
    )
    outcomes: dict[str, Outcome] = {}
    for name in chosen:
        outcomes |= _run_one(tests, name, _environment(target, logs, group_protocol), logs / f"{name}.log")
    if target.name == "strandline":
        names = [name for name in chosen if name in SCENARIO_TESTS]
        outcomes |= _run_scenario(tests, names, target, logs, group_protocol)
    return outcomes


def _run_scenario(tests: Path, names: list[str], usual: Target, logs: Path, group_protocol: str) -> dict[str, Outcome]:
    """The tests that want a broker with other settings: one that creates no topics by itself."""
    outcomes: dict[str, Outcome] = {}
    if names:
        settings = {**usual.settings, "auto.create.topics.enable": "false"}
        with strandline(f"{usual.run_name}-{SCENARIO}", settings) as target:
            environment = {**_environment(target, logs, group_protocol), "TEST_SCENARIO": SCENARIO}
            for name in names:
                found = _run_one(tests, name, environment, logs / f"{name}-{SCENARIO}.log")
                outcomes |= {test: outcome for test, outcome in found.items() if outcome is not Outcome.SKIPPED}
    return outcomes


def _environment(target: Target, logs: Path, group_protocol: str) -> dict[str, str]:
    """Where the runner finds the broker, and Kafka's tools where there are any; what its consumers speak."""
    conf = logs / "test.conf"
    conf.write_text(f"bootstrap.servers={target.bootstrap}\n")
    environment = {
        "BROKERS": target.bootstrap,
        "RDKAFKA_TEST_CONF": str(conf),
        "TEST_CONSUMER_GROUP_PROTOCOL": group_protocol,
    }
    if kafka.why_unavailable() is None:
        environment["KAFKA_PATH"] = str(_kafka_home())
    return environment


def _run_one(tests: Path, name: str, environment: dict[str, str], log_file: Path) -> dict[str, Outcome]:
    """Quickly; but where the quick way leaves out every subtest, and so takes no time at all, in full."""
    found = _started(tests, name, environment, log_file, ("-Q", *OPTIONS), SECONDS_PER_TEST)
    if _NOTHING_DONE.search(log_file.read_text(errors="replace")):
        found = _started(tests, name, environment, log_file, OPTIONS, SECONDS_PER_TEST_IN_FULL)
    return found


def _started(
    tests: Path, name: str, environment: dict[str, str], log_file: Path, options: tuple[str, ...], seconds: int
) -> dict[str, Outcome]:
    own = {"LD_LIBRARY_PATH": "../src:../src-cpp", "TEST_KAFKA_VERSION": BROKER_VERSION, "TESTS": name[:4]}
    variables = {**os.environ, **environment, **own}
    command = ["./test-runner", *options]
    with log_file.open("wb") as log:
        try:
            subprocess.run(command, cwd=tests, env=variables, stdout=log, stderr=subprocess.STDOUT, timeout=seconds)
        except subprocess.TimeoutExpired:
            log.write(b"\nstopped: it took too long\n")
            return {name.replace("-", "_"): Outcome.FAILED}
    # A runner that dies in the middle prints no summary.
    return read_outcomes(log_file.read_text(errors="replace")) or {name.replace("-", "_"): Outcome.FAILED}


def read_outcomes(text: str) -> dict[str, Outcome]:
    """The rows of the runner's summary."""
    rows = (_SUMMARY.match(line) for line in _COLOUR.sub("", text).splitlines())
    return {row[1]: Outcome[row[2]] for row in rows if row is not None}
