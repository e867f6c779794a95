"""`python -m bench.cluster`: three Strandline brokers on one PostgreSQL beside three nodes of Kafka, in one run."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from bench import kafka, machine, page, report
from bench.cluster.faults import Plan
from bench.cluster.figures import WORKLOADS as SHAPES
from bench.cluster.runner import GROUPS, WRITERS, ClusterRunner, Wanted
from bench.cluster.systems import ClusterSystem, KafkaNodes, StrandlineNodes
from bench.figures import WORKLOADS
from bench.generator import Generator
from bench.systems import ApacheKafka, Strandline
from bench.tree import SourceTree

_FILE_WIDTH: Final = 150
_SYSTEMS: Final = ("strandline", "kafka")
_MANY: Final = 10_000
_IDLE_PARTITIONS: Final = 2_000
_RATE: Final = 1_000
_SHAPES: Final = tuple(name for name, _ in SHAPES)
_EXAMPLES: Final = """\
examples:
  .venv/bin/python -m bench.cluster --rounds 3 --json .cache/bench/cluster.json       everything, about an hour
  .venv/bin/python -m bench.cluster --only pauses --kills 50 --controller-kills 15    a broker dies fifty times
  .venv/bin/python -m bench.cluster --only pauses --writer client --rollings 5 --kills 0 --suspensions 0
  .venv/bin/python -m bench.cluster --quick --systems strandline                      does it work? some minutes
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
    about = machine.describe()
    systems = _available(options, console)
    if not systems:
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-cluster-", dir=options.work_dir) as directory:
        runner = ClusterRunner(systems, Generator.build(options.cache), _wanted(options), Path(directory), console)
        try:
            runner.run(options.rounds)
        except BaseException as cut:
            runner.failures.append(f"The run was cut short: {cut!r}")
            raise
        finally:
            command = shlex.join([".venv/bin/python", "-m", "bench.cluster", *(arguments or sys.argv[1:])])
            _report(runner, options, about, command)
    return 1 if runner.failures else 0


def _report(
    runner: ClusterRunner, options: argparse.Namespace, about: dict[str, str | int | float], command: str
) -> None:
    """What there is, also of a run that was cut short. A page takes only a run without failures."""
    title = f"Three brokers; traffic: {_rounds(options.rounds)}"
    if reason := _no_figures(options):
        title = f"NOT figures to keep: {reason}"
    if runner.results.samples:
        runner.console.print(report.results_table(runner.results, title=title))
    report.print_verdict(runner.console, runner.results)
    if options.json:
        report.write_json(options.json, runner.results, [], about, command, runner.failures, outages=runner.outages)
    if options.page and not runner.failures:
        page.update_page(options.page, page.render(runner.results, [], about, command, options.rounds))


def _rounds(rounds: int) -> str:
    return f"medians of {rounds} rounds" if rounds > 1 else "one round"


def _no_figures(options: argparse.Namespace) -> str | None:
    """Why the titles of figures do not fit what is measured."""
    if options.quick:
        return "--quick"
    usual = {"replicas": 3, "min_in_sync": 2, "many": _MANY, "idle_partitions": _IDLE_PARTITIONS, "rate": _RATE}
    return next(
        (f"--{name.replace('_', '-')}" for name, value in usual.items() if getattr(options, name) != value), None
    )


def _available(options: argparse.Namespace, console: Console) -> list[ClusterSystem]:
    makers: dict[str, Callable[[], ClusterSystem]] = {
        "strandline": lambda: StrandlineNodes(Strandline(SourceTree.working()), options.replicas),
        "kafka": lambda: KafkaNodes(ApacheKafka(options.cache), options.replicas),
    }
    found = []
    for name in options.systems:
        system = makers[name]()
        missing = system.why_unavailable()
        if name == "kafka" and options.offline and not kafka.is_installed(options.cache):
            missing = f"its jars are not in {options.cache}, and --offline fetches nothing."
        if missing is None:
            found.append(system)
        else:
            console.print(f"[yellow]Without {name}: {missing}[/yellow]", highlight=False)
    return found


def _wanted(options: argparse.Namespace) -> Wanted:
    quick = options.quick
    return Wanted(
        groups=options.only,
        workloads=[workload for workload in WORKLOADS if workload.name in options.workloads],
        share=0.02 if quick else 0.5,
        min_in_sync=min(options.min_in_sync, options.replicas),
        rate=options.rate,
        latency_seconds=2 if quick else 10,
        writer=options.writer,
        interval=options.interval_ms / 1e3,
        plan=Plan(
            topic="pauses",
            partitions=options.partitions,
            kills=options.kills,
            controller_kills=min(options.controller_kills, options.kills),
            suspensions=options.suspensions,
            rollings=options.rollings,
            away_seconds=options.away,
            least_away_seconds=1.0 if quick else 3.0,
            suspended_seconds=options.suspended,
        ),
        many_partitions=options.many,
        bulk_partitions=100 if quick else 1_000,
        turns=2 if quick else 10,
        idle_partitions=options.idle_partitions,
        idle_seconds=3.0 if quick else 60.0,
        settle_seconds=1.0 if quick else 30.0,
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster",
        description="Three Strandline brokers on one PostgreSQL beside three nodes of Apache Kafka, in one run.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="tiny amounts, one round: whether it works, no figures to keep")
    add("--rounds", type=int, help="rounds of traffic to take medians of (3; 1 with --quick)")
    add("--only", type=_list_of(GROUPS), default=[*GROUPS], help=f"comma-separated: {', '.join(GROUPS)}")
    add("--systems", type=_list_of(_SYSTEMS), default=[*_SYSTEMS], help="comma-separated: strandline,kafka")
    add("--workloads", type=_list_of(_SHAPES), default=[*_SHAPES], help=f"comma-separated: {', '.join(_SHAPES)}")
    add("--replicas", type=int, choices=(1, 2, 3), default=3, help="of every topic (3)")
    add("--min-in-sync", type=int, choices=(1, 2, 3), default=2, help="min.insync.replicas of topics (2)")
    add("--rate", type=int, default=_RATE, help="records a second for the latency (1000)")
    faults = parser.add_argument_group("pauses")
    add = faults.add_argument
    add("--kills", type=int, help="how many brokers die, one after the other (20; 2 with --quick)")
    add("--controller-kills", type=int, help="how many of them are the active controller (3 of 10)")
    add("--suspensions", type=int, help="how many brokers are suspended (3; 1 with --quick)")
    add("--suspended", type=float, help="for how many seconds (30; 3 with --quick)")
    add("--rollings", type=int, help="how often all brokers are restarted in turn (3; 1 with --quick)")
    add("--away", type=float, help="seconds after which a dead broker comes back at the latest (30; 3 with --quick)")
    add("--partitions", type=int, default=6, help="of the topic that is written to (6)")
    add("--interval-ms", type=float, default=5.0, help="between two records of a partition (5)")
    add("--writer", choices=WRITERS, default="bare", help="bare connections, or librdkafka with its defaults (bare)")
    sizes = parser.add_argument_group("sizes")
    add = sizes.add_argument
    add("--many", type=int, help="partitions that are there when metadata changes (10000; 1000 with --quick)")
    add("--idle-partitions", type=int, help="partitions of the cluster at rest (2000; 100 with --quick)")
    files = parser.add_argument_group("files")
    add = files.add_argument
    add("--json", type=Path, metavar="FILE", help="write every sample and every pause to this file")
    add("--page", type=Path, metavar="FILE", help="put the tables into this page (docs/reliability.md)")
    add("--work-dir", type=Path, default=Path(tempfile.gettempdir()), help="where data goes meanwhile")
    add("--offline", action="store_true", help="leave Kafka out where Maven would have to fetch it first")
    add("--cache", type=Path, default=kafka.default_cache(), help="where programs are kept")
    options = parser.parse_args(arguments)
    _fill_in(options)
    reason = _no_figures(options)
    if options.page and reason:
        parser.error(f"--page is for figures to keep, not for a run with {reason}")
    return options


def _fill_in(options: argparse.Namespace) -> None:
    """What depends on --quick, and on how many kills there are."""
    for name, usual, quick in (
        ("rounds", 3, 1),
        ("kills", 20, 2),
        ("suspensions", 3, 1),
        ("suspended", 30.0, 3.0),
        ("rollings", 3, 1),
        ("away", 30.0, 3.0),
        ("many", _MANY, 1_000),
        ("idle_partitions", _IDLE_PARTITIONS, 100),
    ):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)
    if options.controller_kills is None:
        options.controller_kills = -(-options.kills * 3 // 10)


def _list_of(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(allowed)}.")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main())
