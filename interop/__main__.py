"""`python -m interop [suite ...]`: run the suites, compare with their lists, say what changed.

Ends with 1 if a test that is expected to pass did not. `--update` adds what newly passes to the lists; `--against
kafka` runs the same suites against Apache Kafka, which shows what a suite can be expected to pass at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Protocol

from interop import franz_go, kafka_tools, kcat, librdkafka, log_format
from interop.broker import Target, apache_kafka, strandline
from interop.results import Outcome, Report, add_allowed, read_allowed


class Suite(Protocol):
    """A module that knows how to get and run one suite."""

    NAME: str

    def why_unavailable(self) -> str | None:
        """A sentence naming what is missing on this machine, or None."""

    def run(self, target: Target, only: str | None = None) -> dict[str, Outcome]:
        """Run it against a broker."""


SUITES: tuple[Suite, ...] = (log_format, kafka_tools, kcat, franz_go, librdkafka)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    chosen = [suite for suite in SUITES if not options.suites or suite.NAME in options.suites]
    failed = False
    for suite in chosen:
        missing = suite.why_unavailable()
        if missing is not None:
            print(f"{suite.NAME}: left out. {missing}", flush=True)
            continue
        print(f"{suite.NAME}: running ...", flush=True)
        report = _run(suite, options.against, options.only)
        print("\n".join(report.lines()), flush=True)
        if options.update and options.against == "strandline":
            add_allowed(report)
        failed = failed or bool(report.regressions)
    return 1 if failed and options.against == "strandline" else 0


def _run(suite: Suite, against: str, only: str | None) -> Report:
    broker = strandline if against == "strandline" else apache_kafka
    with broker(suite.NAME) as target:
        outcomes = suite.run(target, only)
    allowed = read_allowed(suite.NAME)
    if only is not None:  # the others were not asked for
        allowed &= outcomes.keys()
    return Report(suite=suite.NAME, outcomes=outcomes, allowed=allowed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m interop", description="Other projects' suites against a broker")
    parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(suite.NAME for suite in SUITES))
    parser.add_argument("--only", help="run only tests that match this (a suite's own way of matching)")
    parser.add_argument("--update", action="store_true", help="add newly passing tests to the lists")
    parser.add_argument("--against", choices=("strandline", "kafka"), default="strandline")
    return parser


if __name__ == "__main__":
    sys.exit(main())
