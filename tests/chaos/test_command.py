"""The command of the run with faults, as people start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chaos.__main__ import main
from chaos.history import Append, Attempt, Ended, Event, Fault, Outcome, Promise, Run, Trouble, to_line

from chaos import isolation

ROOT = Path(__file__).parents[2]


def test_the_verdict_of_a_history_as_text_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(to_line(Run(seed=1, seconds=1.0, tiers=["classic"])) + "\n")
    assert main(["--verify", str(path)]) == 0
    assert "violations: 0" in capsys.readouterr().out
    with path.open("a") as output:
        output.write(to_line(Trouble(at=1.0, what="broker 1 ended by itself", text="at night")) + "\n")
    assert main(["--verify", str(path), "--json"]) == 1
    (violation,) = json.loads(capsys.readouterr().out)["violations"]
    assert violation == {"kind": "trouble", "text": "broker 1 ended by itself: at night"}


def test_the_verdict_counts_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append = Append(topic="list-classic", partition=0, value="txn-1/1")
    aborted = Attempt(
        at=1.0,
        writer="txn-1",
        promise=Promise.TRANSACTIONAL,
        outcome=Outcome.ABORTED,
        appends=[append],
        error="INVALID_TXN_STATE",
    )
    events: list[Event] = [
        Run(seed=1, seconds=1.0, tiers=["classic"]),
        aborted,
        replace(aborted, appends=[]),
        Fault(at=1.0, kind="SIGKILL", target="broker 1", seconds=1.0),
        Ended(
            at=1.0, writer="txn-1", operation="abort_transaction", error="_FENCED", text="", is_fatal=True, after="none"
        ),
    ]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(to_line(event) + "\n" for event in events))
    assert main(["--verify", str(path)]) == 1  # it has no end
    lines = capsys.readouterr().out.splitlines()
    assert "transactions: 2 aborted, 0 committed, 0 unknown" in lines
    assert "  transactional, aborted after INVALID_TXN_STATE: 2" in lines
    assert "records: 1 appended, 0 read, 0 given to groups" in lines
    assert "faults: 1 (1 SIGKILL)" in lines
    assert "clients replaced after abort_transaction, _FENCED (fatal): 1" in lines
    assert "violations: 2 (2 not-read)" in lines
    main(["--verify", str(path), "--json"])
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["operations"]["transactional"] == {"committed": 0, "aborted": 2, "unknown": 0}
    assert verdict["run"] == {"seed": 1, "seconds": 1.0, "tiers": ["classic"], "brokers": 2, "replicas": 1}


def test_a_history_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--verify", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--tier", "paper"],
        ["--seconds", "0"],
        ["--minutes", "x"],
        ["--brokers", "0"],
        ["--faults", "rain"],
        ["--seed", "x"],
    ],
)
def test_wrong_arguments_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_a_fault_that_cannot_be_done_here_is_named_before_anything_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--on-loopback", "--faults", "disk full", "--directory", str(tmp_path / "run")]
    assert main(arguments) == 2
    assert "'disk full' cannot be done here; SIGKILL" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "python -m chaos --minutes 30 --seed 7" in capsys.readouterr().out


def verdict_of(directory: Path, *arguments: str) -> dict[str, Any]:
    """Of a run in which nothing must be wrong."""
    command = [sys.executable, "-m", "chaos", *arguments, "--json", "--directory", str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    verdict: dict[str, Any] = json.loads(done.stdout)
    assert verdict["violations"] == []
    for promise in ("transactional", "idempotent", "plain"):
        assert verdict["operations"][promise]["committed"] > 0
    assert verdict["records_delivered"] > 0
    return verdict


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="suspends the processes of PostgreSQL")
def test_a_run_of_seconds_has_a_fault_and_no_violation(tmp_path: Path) -> None:
    faults = "SIGKILL leader,link cut one way" if isolation.why_not() is None else "SIGKILL leader,SIGSTOP"
    arguments = ["--seconds", "12", "--few-clients", "--tier", "replicated", "--faults", faults, "--seed", "48"]
    assert sum(verdict_of(tmp_path, *arguments)["faults"].values()) > 0


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="suspends the processes of PostgreSQL")
def test_a_short_run_has_faults_and_no_violation(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, "--seconds", "45", "--seed", "3")
    assert verdict["faults"].pop("switch to diskless") == 2
    assert sum(verdict["faults"].values()) > 0


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="suspends the processes of PostgreSQL")
def test_an_interrupted_run_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chaos", "--seconds", "600", "--seed", "3", "--directory", str(tmp_path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # by which the processes of this run are known
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        while not said or "faults" not in said[-1]:  # clients and faults are at work
            said.append(process.stderr.readline())
            assert said[-1], "".join(said)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=200)
    assert process.returncode == 130, said
    left = [path for path in Path("/proc").glob("[0-9]*/environ") if str(tmp_path) in _text(path)]
    assert left == []


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # it has ended meanwhile
