"""topicctl, which applies descriptions of topics to a cluster, built from its Go module."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from interop.broker import CACHE, Target
from interop.records import write_all_codecs
from interop.results import Outcome

NAME = "topicctl"
VERSION = "v1.20.0"
MODULE = "github.com/segmentio/topicctl"
SECONDS = 60.0

_CLUSTER = """\
meta: {{name: interop, environment: test, region: here, description: a broker}}
spec: {{bootstrapAddrs: ["{bootstrap}"]}}
"""
_TOPIC = """\
meta: {{name: {name}, cluster: interop, environment: test, region: here, description: a topic}}
spec:
  partitions: {partitions}
  replicationFactor: 1
  retentionMinutes: 360
  placement: {{strategy: any}}
  settings: {{cleanup.policy: delete, max.message.bytes: {max_bytes}}}
"""


class TopicctlFailed(Exception):
    """topicctl ended with an error, or printed something else than expected."""


def why_unavailable() -> str | None:
    return None if shutil.which("go") else "topicctl is built with Go, and no `go` is on the path."


def prepare() -> Path:
    """The program. Built inside a copy of the module, whose own go.sum says what it is made of."""
    program = CACHE / f"topicctl-{VERSION}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        download = subprocess.run(
            ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], check=True, capture_output=True, text=True
        )
        source = CACHE / f"topicctl-{VERSION}-source"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(json.loads(download.stdout)["Dir"], source)
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
        subprocess.run(["go", "build", "-o", str(program), "./cmd/topicctl"], cwd=source, check=True)
    return program


class Topicctl:
    """Runs topicctl against one broker."""

    def __init__(self, target: Target) -> None:
        self.bootstrap = target.bootstrap
        self._program, self._log_file = prepare(), target.suite_log
        self._directory = target.suite_log.with_suffix("")
        self._directory.mkdir(parents=True, exist_ok=True)
        self._cluster = self._directory / "cluster.yaml"
        self._cluster.write_text(_CLUSTER.format(bootstrap=target.bootstrap))

    def describe(self, name: str, *, partitions: int, max_bytes: int) -> str:
        """A file that describes a topic."""
        path = self._directory / f"{name}.yaml"
        path.write_text(_TOPIC.format(name=name, partitions=partitions, max_bytes=max_bytes))
        return str(path)

    def apply(self, description: str, *, expect: str = "Apply completed successfully") -> str:
        return self.run("apply", "--skip-confirm", "--sleep-loop-duration", "1s", description, expect=expect)

    def run(self, verb: str, *arguments: str, expect: str = "") -> str:
        """What topicctl printed. Raises TopicctlFailed unless it succeeds and prints `expect` (a pattern)."""
        command = [str(self._program), verb, "--no-spinner", "--cluster-config", str(self._cluster), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        said = done.stdout + done.stderr
        with self._log_file.open("a") as log:
            log.write(f"$ {' '.join(command[1:])}\n{said}\n")
        if done.returncode != 0 or not re.search(expect, said, re.MULTILINE):
            raise TopicctlFailed(f"{verb} ended with {done.returncode}, expected {expect!r}:\n{said}")
        return said


def create(topicctl: Topicctl) -> None:
    topicctl.apply(topicctl.describe("created", partitions=3, max_bytes=500_000))
    topicctl.run("get", "topics", expect=r"^ *created *\| 3 *\| 1 *\| 360 ")
    topicctl.apply(topicctl.describe("created", partitions=3, max_bytes=500_000), expect="Updating existing topic")


def change(topicctl: Topicctl) -> None:
    """A setting and the number of partitions; records that were there stay."""
    topicctl.apply(topicctl.describe("changed", partitions=2, max_bytes=500_000))
    write_all_codecs(topicctl.bootstrap, ["changed"], 2)
    description = topicctl.describe("changed", partitions=5, max_bytes=600_000)
    topicctl.apply(description, expect=r"max\.message\.bytes \| 500000 +\| 600000 ")
    topicctl.run("get", "partitions", "changed", expect=r"^ *changed *\| 4 *\| 1 .* OK ")


def verify(topicctl: Topicctl) -> None:
    """The topic is as it is described: no setting more, no setting less."""
    description = topicctl.describe("verified", partitions=2, max_bytes=500_000)
    topicctl.apply(description)
    topicctl.run("check", description, expect="Topic verified .* OK")


def look(topicctl: Topicctl) -> None:
    topicctl.apply(topicctl.describe("seen", partitions=2, max_bytes=500_000))
    topicctl.run("get", "brokers", expect=r"127\.0\.0\.1")
    topicctl.run("get", "config", "seen", expect=r"max\.message\.bytes")
    topicctl.run("get", "offsets", "seen", expect=r"^ *0 ")
    topicctl.run("get", "groups", expect="")


CHECKS: tuple[Callable[[Topicctl], None], ...] = (create, change, verify, look)


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run every check, or the one named `only`."""
    log_file = target.suite_log
    log_file.write_text("")
    topicctl = Topicctl(target)
    chosen = [check for check in CHECKS if only is None or check.__name__ == only]
    return {check.__name__: _outcome(check, topicctl, log_file) for check in chosen}


def _outcome(check: Callable[[Topicctl], None], topicctl: Topicctl, log_file: Path) -> Outcome:
    try:
        check(topicctl)
    except (TopicctlFailed, subprocess.TimeoutExpired) as failure:
        with log_file.open("a") as log:
            log.write(f"FAILED {check.__name__}: {failure}\n")
        return Outcome.FAILED
    return Outcome.PASSED
