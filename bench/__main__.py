"""Command line of the benchmark: `.venv/bin/python -m bench [--quick] [--only ...] [--against REV]`."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from bench import change, kafka, machine, measures, page, perftool, profiling, report, tree
from bench.figures import WORKLOADS
from bench.generator import Generator, LoadFailed
from bench.measures import FULL, QUICK, Bench, Measured, Step
from bench.process import ProcessFailed
from bench.runner import GROUPS, Runner
from bench.systems import ApacheKafka, Strandline, System
from bench.tiering.parts import TIERING_PARTS
from bench.tree import SourceTree, TreeFailed

_SYSTEMS: Final[dict[str, Callable[[argparse.Namespace], System]]] = {
    change.NOW: lambda options: Strandline(SourceTree.working()),
    change.BEFORE: lambda options: Strandline(SourceTree.at(options.against, options.cache), change.BEFORE),
    "kafka": lambda options: ApacheKafka(options.cache),
}
_PERF_TOOL: Final = "perf-tool"
_TIERING: Final = "tiering"
"""All groups of the pipeline."""
_FILE_WIDTH: Final = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when everything that was asked for could be measured, targets met or not."""
    options = _parse(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
    try:
        systems = _available(options, console)
    except TreeFailed as failure:
        console.print(f"[red]{failure}[/red]", highlight=False)
        return 1
    options.work_dir.mkdir(parents=True, exist_ok=True)
    work_dir = Path(tempfile.mkdtemp(prefix="strandline-bench-", dir=options.work_dir))
    try:
        runner = Runner(
            systems=systems,
            generator=Generator.build(options.cache),
            scale=QUICK if options.quick else FULL,
            work_dir=work_dir,
            cache=options.cache,
            console=console,
            groups=[group for group in options.only if group in GROUPS],
            workloads=options.workloads,
        )
        if options.profile:
            return _profile(runner, options)
        return _measure(runner, options)
    except (LoadFailed, ProcessFailed, profiling.ProfilerMissing) as failure:
        console.print(f"[red]{failure}[/red]", highlight=False)
        return 1
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)


def _measure(runner: Runner, options: argparse.Namespace) -> int:
    console, about = runner.console, machine.describe()
    if options.against:
        about["against"] = tree.resolve(options.against)
        about["against_hot_modules"] = SourceTree.at(options.against, options.cache).hot_modules()
    console.print(f"{about['processor']}, {about['cores']} cores, {about['memory_gb']} GB, load {about['load_before']}")
    console.print(f"hot modules: {about['hot_modules']}", highlight=False)
    if runner.groups:
        for number in range(options.rounds):
            console.rule(f"round {number + 1} of {options.rounds}")
            runner.run_round(number)
    comparisons = _check_generator(runner, options) if _PERF_TOOL in options.only else []
    found = list(change.changes(report.measured_figures(runner.results), runner.results, runner.rounds))
    title = f"medians of {options.rounds} rounds" if options.rounds > 1 else "one round"
    if runner.results.samples and (not options.against or "kafka" in options.systems):
        console.print(report.results_table(runner.results, title=title.capitalize()))
    if options.against:
        where = f"The working tree (now) and {options.against} (before, {about['against']:.12})"
        console.print(f"hot modules before: {about['against_hot_modules']}", highlight=False)
        console.print(change.changes_table(found, title=f"{where}, {title}"))
    if comparisons:
        console.print(report.comparison_table(comparisons))
    report.print_verdict(console, runner.results)
    command = shlex.join([".venv/bin/python", "-m", "bench", *sys.argv[1:]])
    if options.page:
        page.update_page(options.page, page.render(runner.results, comparisons, about, command, options.rounds))
    if options.json:
        changes = change.as_json(found) if options.against else None
        report.write_json(options.json, runner.results, comparisons, about, command, runner.failures, changes)
    return 1 if runner.failures else 0


def _check_generator(runner: Runner, options: argparse.Namespace) -> list[perftool.Comparison]:
    reason = kafka.why_unavailable(options.cache)
    if reason is not None:
        runner.console.print(f"[yellow]{reason}[/yellow]")
        return []
    runner.console.rule("load generators")
    system = ApacheKafka(options.cache)
    broker = system.new_broker(runner.work_dir / "perf-tool")
    try:
        broker.start()
        bench = Bench(broker, runner.generator, runner.scale)
        measures.warm_up(bench)
        return list(perftool.compare(bench, system.libraries))
    finally:
        broker.stop()


def _profile(runner: Runner, options: argparse.Namespace) -> int:
    """Each chosen measurement once on Strandline, with a sampler attached; figures are lower than without one."""
    py_spy = profiling.install_py_spy(options.cache)
    target = options.cache / "bench" / "profiles"
    runner.systems = [system for system in runner.systems if system.name == change.NOW]

    def watched(step: Step) -> Step:
        def run(bench: Bench) -> Measured:
            name = step.title.replace(" ", "-").replace(",", "")
            with profiling.sampled(py_spy, bench.broker.process.pid, target / name):
                measured = step.run(bench)
            profile = profiling.Profile.read((target / name).with_suffix(".txt"))
            runner.console.print(profiling.top_table(profile, f"{step.title}: {profile.total} samples"))
            return measured

        return Step(step.title, run)

    runner.run_round(0, watched=watched)
    runner.console.print(f"Collapsed stacks (for any flame graph viewer) and perf reports: {target}")
    return 1 if runner.failures else 0


def _available(options: argparse.Namespace, console: Console) -> list[System]:
    systems = []
    for name in options.systems:
        system = _SYSTEMS[name](options)
        reason = system.why_unavailable()
        if reason is None:
            systems.append(system)
        else:
            console.print(f"[yellow]Without {name}: {reason}[/yellow]", highlight=False)
    return systems


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Strandline beside Apache Kafka, in one run.")
    everything = (*GROUPS, _PERF_TOOL, _TIERING)
    parser.add_argument("--rounds", type=int, help="rounds to take medians of (3; 4 with --against; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work: about 7 minutes, for development")
    parser.add_argument("--only", type=_list_of(everything), help=f"comma-separated: {', '.join(everything)}")
    parser.add_argument(
        "--systems",
        type=_list_of([*_SYSTEMS]),
        help="comma-separated: strandline,kafka; with --against strandline,before",
    )
    parser.add_argument(
        "--against", metavar="REV", help="measure this commit too, as the system `before`, and judge the change"
    )
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--workloads", type=_list_of(names), default=[], help=f"comma-separated: {', '.join(names)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into this page (docs/benchmarks.md)")
    parser.add_argument(
        "--profile", action="store_true", help="sample Strandline while it works, print where time goes"
    )
    parser.add_argument("--work-dir", type=Path, default=Path(tempfile.gettempdir()), help="where data goes meanwhile")
    parser.add_argument("--cache", type=Path, default=kafka.default_cache(), help="where programs are kept")
    options = parser.parse_args(arguments)
    both = [change.NOW, change.BEFORE]
    if options.systems is None:
        options.systems = both if options.against else [change.NOW, "kafka"]
    if options.against and not {*both} <= {*options.systems}:
        parser.error("--against compares the systems strandline and before: --systems must name both")
    if options.against and (options.page or options.profile):
        parser.error("--against can be combined with neither --page nor --profile")
    if change.BEFORE in options.systems and not options.against:
        parser.error("the system before is the commit that --against names")
    if options.only is None:
        options.only = _default_groups(options)
    if _TIERING in options.only:
        options.only = [*(group for group in options.only if group not in (_TIERING, *TIERING_PARTS)), *TIERING_PARTS]
    if options.rounds is None:
        # An even number, so that each tree goes first as often as the other.
        options.rounds = 1 if options.quick else 4 if options.against else 3
    return options


def _default_groups(options: argparse.Namespace) -> list[str]:
    # Those of the pipeline take half an hour more, with a Spark of their own.
    groups = [group for group in GROUPS if group not in TIERING_PARTS]
    if options.against:
        return [group for group in groups if group != "loopback"]
    return groups if options.quick or options.profile else [*groups, _PERF_TOOL]


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
