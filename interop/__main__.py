"""`python -m interop [suite ...]`: run the suites, compare with their lists, say what changed.

Every suite runs with classic topics, then all of them run again with diskless ones; `--topics` chooses one kind. Ends
with 1 if a test that is expected to pass did not. `--update` adds what newly passes to the lists; `--against kafka`
runs the same suites against Apache Kafka, which shows what a suite can be expected to pass at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Protocol

from interop import (
    franz_go,
    kafka_tools,
    kcat,
    librdkafka,
    librdkafka_consumer,
    log_format,
    pipeline,
    share,
    streams,
    switch,
    tiered_storage,
    topicctl,
    transactions,
)
from interop.broker import Target, Topics, apache_kafka, must_be_as_wanted, strandline
from interop.results import Outcome, Report, add_allowed, read_allowed


class Suite(Protocol):
    """A module that knows how to get and run one suite."""

    NAME: str

    def why_unavailable(self) -> str | None:
        """A sentence naming what is missing on this machine, or None."""

    def run(self, target: Target, only: str | None = None) -> dict[str, Outcome]:
        """Run it against a broker."""


SUITES: tuple[Suite, ...] = (
    log_format,
    tiered_storage,
    switch,
    pipeline,
    kafka_tools,
    transactions,
    share,
    streams,
    kcat,
    topicctl,
    franz_go,
    librdkafka,
    librdkafka_consumer,
)
CLASSIC_ONLY = dict.fromkeys(
    (log_format.NAME, tiered_storage.NAME), "It is about segment files, and diskless topics have none."
) | {
    switch.NAME: "It is about topics that become diskless.",
    librdkafka_consumer.NAME: "It is about groups, and has run with the classic topics.",
    pipeline.NAME: "It makes its diskless topics itself, and has run with the classic ones.",
}


OWN_BROKERS = {streams.NAME}
"""Suites that leave the broker they are given alone, and look at their own."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    chosen = [suite for suite in SUITES if not options.suites or suite.NAME in options.suites]
    failed = False
    for topics in _kinds(options.topics, options.against):
        for suite in chosen:
            name = topics.run_name(suite.NAME)
            missing = _why_left_out(suite, topics, options.against)
            if missing is not None:
                print(f"{name}: left out. {missing}", flush=True)
                continue
            print(f"{name}: running ...", flush=True)
            report = _run(suite, topics, options.against, options.only)
            print("\n".join(report.lines()), flush=True)
            if options.update and options.against == "strandline":
                add_allowed(report)
            failed = failed or bool(report.regressions)
    return 1 if failed and options.against == "strandline" else 0


def _kinds(wanted: str | None, against: str) -> tuple[Topics, ...]:
    """The kinds of topics to run with, in order. Apache Kafka has only one."""
    if against == "kafka":
        return (Topics.CLASSIC,)
    return (Topics(wanted),) if wanted else tuple(Topics)


def _why_left_out(suite: Suite, topics: Topics, against: str) -> str | None:
    if against == "kafka" and suite.NAME in {switch.NAME, pipeline.NAME}:
        return "Kafka has no diskless topics."
    if topics is Topics.DISKLESS and suite.NAME in CLASSIC_ONLY:
        return CLASSIC_ONLY[suite.NAME]
    return suite.why_unavailable()


def _run(suite: Suite, topics: Topics, against: str, only: str | None) -> Report:
    broker = strandline if against == "strandline" else apache_kafka
    name = topics.run_name(suite.NAME)
    with broker(name, topics.settings) as target:
        outcomes = suite.run(target, only)
        if only is None and suite.NAME not in OWN_BROKERS:
            must_be_as_wanted(topics, target.objects)
    allowed = read_allowed(name)
    if only is not None:  # the others were not asked for
        allowed &= outcomes.keys()
    return Report(suite=name, outcomes=outcomes, allowed=allowed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m interop", description="Other projects' suites against a broker")
    parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(suite.NAME for suite in SUITES))
    kinds = [topics.value for topics in Topics]
    parser.add_argument("--topics", choices=kinds, help="what the topics are (default: first one, then the other)")
    parser.add_argument("--only", help="run only tests that match this (a suite's own way of matching)")
    parser.add_argument("--update", action="store_true", help="add newly passing tests to the lists")
    parser.add_argument("--against", choices=("strandline", "kafka"), default="strandline")
    return parser


if __name__ == "__main__":
    sys.exit(main())
