"""`python -m chaos`: a run with faults, and its verdict. Ends with 1 if there is a violation."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chaos.history import read_history
from chaos.report import report_of
from chaos.run import TIERS, Wanted, run

_EXAMPLE = """\
example:
  python -m chaos --seconds 1800 --seed 7 --tier classic,diskless,switched
  python -m chaos --verify /tmp/strandline-chaos-x/history.jsonl    judge the history of an earlier run again

The run needs Linux. It starts two brokers and a PostgreSQL on the loopback interface, stops by itself a few minutes
after the given time at the latest, and keeps its history and the logs of the brokers. The seed repeats the faults and
what clients intend; when things happen depends on the machine, and the verdict does not.
status: 0 without violations, 1 with some, 2 if the run could not be made.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C: the processes of the run have to end
    history: Path | None = options.verify
    try:
        if history is None:
            history = _run(options)
        report = report_of(read_history(history))
    except KeyboardInterrupt:
        print("Stopped; there is no verdict.", file=sys.stderr)
        return 130
    except (OSError, ValueError, AssertionError) as error:
        print(f"The run could not be made: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps({"history": str(history), **report.to_json()}, indent=2))
    else:
        print("\n".join([*report.lines(), f"history: {history}"]))
    return 1 if report.violations else 0


def _run(options: argparse.Namespace) -> Path:
    directory = options.directory or Path(tempfile.mkdtemp(prefix="strandline-chaos-"))
    wanted = Wanted(seconds=options.seconds, seed=options.seed, tiers=options.tier, directory=directory)
    _say(f"seed {wanted.seed}, {wanted.seconds:g} s, {' and '.join(wanted.tiers)} topics; history: {wanted.history}")
    run(wanted, _say)
    return wanted.history


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _tiers(text: str) -> list[str]:
    tiers = text.split(",")
    for tier in tiers:
        if tier not in TIERS:
            raise argparse.ArgumentTypeError(f"{tier!r} is not one of {', '.join(TIERS)}")
    return tiers


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 7 * 86_400:
        raise argparse.ArgumentTypeError("must be more than 0 and at most a week")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chaos",
        description="Append to lists in transactions while processes are killed, paused and restarted, and judge.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=_seconds, default=120.0, help="how long faults happen (default: 120)")
    parser.add_argument("--seed", type=int, default=1, help="decides the faults and what clients do (default: 1)")
    tiers = ",".join(TIERS)
    parser.add_argument("--tier", type=_tiers, default=tiers, metavar=tiers, help="kinds of topics (default: all)")
    parser.add_argument("--directory", type=Path, help="for data, logs and history (default: a new temporary one)")
    parser.add_argument("--verify", type=Path, metavar="HISTORY", help="only judge the history of an earlier run")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON; progress is on standard error")
    return parser


if __name__ == "__main__":
    sys.exit(main())
