"""Reading the output of other projects' test runners, and judging it by our lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop import franz_go, librdkafka, results
from interop.broker import Topics
from interop.results import Outcome, Report

GO_OUTPUT = """\
{"Action":"start","Package":"kgo"}
{"Action":"run","Test":"TestPassing"}
{"Action":"run","Test":"TestPassing/sub"}
{"Action":"fail","Test":"TestPassing/sub"}
{"Action":"pass","Test":"TestPassing"}
{"Action":"run","Test":"TestFailing"}
{"Action":"fail","Test":"TestFailing"}
{"Action":"run","Test":"TestSkipped"}
{"Action":"skip","Test":"TestSkipped"}
{"Action":"run","Test":"TestThatNeverEnds"}
panic: test timed out
"""

RUNNER_OUTPUT = """\
[36m[<MAIN> / 1.6s] ALL-TESTS: duration 1613.558ms
|[32m <MAIN>                |     PASSED |   1.614s [0m|
|[32m 0012_produce_consume  |     PASSED |   1.587s [0m|
|[36m 0004_conf             |    SKIPPED |   0.000s [0m|[36m Filtered[0m
|[31m 0081_admin            |     FAILED |  12.000s [0m| some reason
"""


def test_the_output_of_go() -> None:
    assert franz_go.read_outcomes(GO_OUTPUT.splitlines()) == {
        "TestPassing": Outcome.PASSED,
        "TestFailing": Outcome.FAILED,
        "TestSkipped": Outcome.SKIPPED,
        "TestThatNeverEnds": Outcome.FAILED,
    }


def test_the_output_of_librdkafkas_runner() -> None:
    assert librdkafka.read_outcomes(RUNNER_OUTPUT.replace("[3", "\x1b[3").replace("[0m", "\x1b[0m")) == {
        "0012_produce_consume": Outcome.PASSED,
        "0004_conf": Outcome.SKIPPED,
        "0081_admin": Outcome.FAILED,
    }


def test_an_expected_test_that_does_not_pass_is_a_regression() -> None:
    outcomes = {"good": Outcome.PASSED, "new": Outcome.PASSED, "bad": Outcome.FAILED, "known": Outcome.FAILED}
    report = Report(suite="suite", outcomes=outcomes, allowed=frozenset({"good", "bad", "gone"}))
    assert report.regressions == ["bad", "gone"]
    assert report.newly_passing == ["new"]
    assert report.known_failures == ["known"]
    assert "gone (missing)" in "\n".join(report.lines())


def test_the_list_only_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "HERE", tmp_path)
    results.add_allowed(Report(suite="suite", outcomes={"first": Outcome.PASSED}, allowed=frozenset()))
    later = Report(suite="suite", outcomes={"first": Outcome.FAILED, "second": Outcome.PASSED}, allowed=frozenset())
    results.add_allowed(later)
    assert results.read_allowed("suite") == {"first", "second"}
    assert (tmp_path / "suite.allow").read_text().startswith("# Tests of suite")


@pytest.mark.parametrize("suite", ["franz-go", "kafka-tools", "kcat", "librdkafka", "log-format"])
def test_every_suite_has_a_list(suite: str) -> None:
    assert results.read_allowed(suite)


@pytest.mark.parametrize("suite", ["franz-go", "kafka-tools", "kcat", "librdkafka"])
def test_every_suite_has_a_list_for_diskless_topics_with_no_test_that_classic_ones_fail(suite: str) -> None:
    assert results.read_allowed(Topics.DISKLESS.run_name(suite))
    assert results.read_allowed(Topics.DISKLESS.run_name(suite)) <= results.read_allowed(suite)
