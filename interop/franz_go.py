"""franz-go's own tests of its client (pkg/kgo), fetched with the Go module proxy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from interop.broker import CACHE, Target
from interop.results import Outcome

NAME = "franz-go"
VERSION = "v1.22.2"
MODULE = "github.com/twmb/franz-go"

# The suite writes half a million records by default; a tenth finds the same mistakes in a tenth of the time.
ENVIRONMENT = {
    "KGO_TEST_RF": "1",
    "KGO_TEST_RECORDS": "50000",
    "KGO_LOG_LEVEL": "none",
    "KGO_TEST_MAX_TOPIC_PARTS": "7",
}
TIMEOUT_MINUTES = 15

_OUTCOMES = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}


def why_unavailable() -> str | None:
    return None if shutil.which("go") else "franz-go's tests need Go, and no `go` is on the path."


def prepare() -> Path:
    """The directory of the client package, in a copy that we may write to."""
    target = CACHE / f"franz-go-{VERSION}"
    if not target.exists():
        download = subprocess.run(
            ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], check=True, capture_output=True, text=True
        )
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(json.loads(download.stdout)["Dir"], partial)
        subprocess.run(["chmod", "-R", "u+w", str(partial)], check=True)
        partial.rename(target)
    return target / "pkg" / "kgo"


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run the suite, or the tests whose names match `only`, against a broker."""
    command = ["go", "test", "-json", "-count=1", "-parallel=4", f"-timeout={TIMEOUT_MINUTES}m"]
    command += [f"-run={only}"] if only else []
    environment = {**os.environ, **ENVIRONMENT, "KGO_SEEDS": target.bootstrap}
    done = subprocess.run([*command, "."], cwd=prepare(), env=environment, capture_output=True, text=True)
    target.suite_log.write_text(done.stdout + done.stderr)
    return read_outcomes(done.stdout.splitlines())


def read_outcomes(lines: Iterable[str]) -> dict[str, Outcome]:
    """The outcome of every test in the output of `go test -json`. A test passes when all its subtests do."""
    outcomes: dict[str, Outcome] = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        name, action = event.get("Test"), event.get("Action")
        if name is None or "/" in name:
            continue
        if action == "run":
            outcomes[name] = Outcome.FAILED  # until it says otherwise: a test that never ends has failed
        elif action in _OUTCOMES:
            outcomes[name] = _OUTCOMES[action]
    return outcomes
