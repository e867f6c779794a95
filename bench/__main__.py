"""Command line of the benchmark: `.venv/bin/python -m bench [--quick] [--only ...] [--systems ...] [--json FILE]`."""

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

from bench import kafka, machine, measures, page, perftool, profiling, report
from bench.figures import WORKLOADS
from bench.generator import Generator, LoadFailed
from bench.measures import FULL, QUICK, Bench, Measured
from bench.process import ProcessFailed
from bench.runner import GROUPS, Runner, Step
from bench.systems import ApacheKafka, Strandline, System

_SYSTEMS: Final[dict[str, Callable[[Path], System]]] = {
    "strandline": lambda cache: Strandline(),
    "kafka": lambda cache: ApacheKafka(cache),
}
_PERF_TOOL: Final = "perf-tool"
_FILE_WIDTH: Final = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when everything that was asked for could be measured, targets met or not."""
    options = _parse(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
    systems = _available(options.systems, options.cache, console)
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
    console.print(f"{about['processor']}, {about['cores']} cores, {about['memory_gb']} GB, load {about['load_before']}")
    if runner.groups:
        for number in range(options.rounds):
            console.rule(f"round {number + 1} of {options.rounds}")
            runner.run_round(number)
    comparisons = _check_generator(runner, options) if _PERF_TOOL in options.only else []
    if runner.results.samples:
        title = f"Medians of {options.rounds} rounds" if options.rounds > 1 else "One round"
        console.print(report.results_table(runner.results, title=title))
    if comparisons:
        console.print(report.comparison_table(comparisons))
    report.print_verdict(console, runner.results)
    command = shlex.join([".venv/bin/python", "-m", "bench", *sys.argv[1:]])
    if options.page:
        page.update_page(options.page, page.render(runner.results, comparisons, about, command, options.rounds))
    if options.json:
        report.write_json(options.json, runner.results, comparisons, about, command, runner.failures)
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
    runner.systems = [system for system in runner.systems if system.name == "strandline"]

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


def _available(names: Sequence[str], cache: Path, console: Console) -> list[System]:
    systems = []
    for name in names:
        system = _SYSTEMS[name](cache)
        reason = system.why_unavailable()
        if reason is None:
            systems.append(system)
        else:
            console.print(f"[yellow]Without {name}: {reason}[/yellow]", highlight=False)
    return systems


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Strandline beside Apache Kafka, in one run.")
    everything = (*GROUPS, _PERF_TOOL)
    parser.add_argument("--rounds", type=int, help="rounds to take medians of (3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work: about 5 minutes, for development")
    parser.add_argument("--only", type=_list_of(everything), help=f"comma-separated: {', '.join(everything)}")
    parser.add_argument("--systems", type=_list_of(_SYSTEMS), default=[*_SYSTEMS], help=f"default {','.join(_SYSTEMS)}")
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
    if options.only is None:
        options.only = [*GROUPS] if options.quick or options.profile else [*everything]
    if options.rounds is None:
        options.rounds = 1 if options.quick else 3
    return options


def _list_of(allowed: Sequence[str] | dict[str, Callable[[Path], System]]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(allowed)}.")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main())
