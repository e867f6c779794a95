"""`python -m chaos`: a run with faults, and its verdict. Ends with 1 if there is a violation."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chaos import isolation
from chaos.history import read_history
from chaos.plan import KINDS
from chaos.report import report_of
from chaos.run import run
from chaos.wanted import BROKERS, CLIENTS, FEW_CLIENTS, REPLICAS, TIERS, Wanted

_EXAMPLE = """\
example:
  python -m chaos --minutes 30 --seed 7 --tier replicated,diskless
  python -m chaos --seconds 60 --faults "SIGKILL leader,link cut one way"    only these, again and again
  python -m chaos --verify /tmp/strandline-chaos-x/history.jsonl    judge the history of an earlier run again

The run needs Linux. It starts brokers and a PostgreSQL, stops by itself a few minutes after the given time at the
latest, and keeps its history and the logs of the brokers. With root it has a network of its own, in which links are
cut, and disks of its own; without, everything is on the loopback interface, and these faults are left out. The seed
repeats the faults and what clients intend; when things happen depends on the machine, and the verdict does not.
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
    reason = "the run is on the loopback interface" if options.on_loopback else isolation.why_not()
    wanted = Wanted(
        seconds=options.seconds,
        seed=options.seed,
        tiers=options.tier,
        directory=directory,
        brokers=options.brokers,
        replicas=min(options.replicas, options.brokers),
        faults=options.faults,
        is_isolated=reason is None,
        clients=FEW_CLIENTS if options.few_clients else CLIENTS,
    )
    if reason is not None:
        _say(f"No faults of links and disks: {reason}.")
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


def _faults(text: str) -> list[str]:
    faults = text.split(",")
    for fault in faults:
        if fault not in KINDS:
            raise argparse.ArgumentTypeError(f"{fault!r} is not one of {', '.join(KINDS)}")
    return faults


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 9:
        raise argparse.ArgumentTypeError("must be from 1 to 9")
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 7 * 86_400:
        raise argparse.ArgumentTypeError("must be more than 0 and at most a week")
    return seconds


def _minutes(text: str) -> float:
    return _seconds(str(float(text) * 60))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chaos",
        description="Append to lists in transactions while processes are killed, paused and restarted, and judge.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=_seconds, default=120.0, help="how long faults happen (default: 120)")
    parser.add_argument("--minutes", type=_minutes, dest="seconds", help="the same in minutes")
    parser.add_argument("--seed", type=int, default=1, help="decides the faults and what clients do (default: 1)")
    tiers = ",".join(TIERS)
    parser.add_argument("--tier", type=_tiers, default=tiers, metavar=tiers, help="kinds of topics (default: all)")
    parser.add_argument("--brokers", type=_count, default=BROKERS, help=f"how many (default: {BROKERS})")
    text = f"of each partition of the replicated tier and of internal topics (default: {REPLICAS})"
    parser.add_argument("--replicas", type=_count, default=REPLICAS, help=text)
    parser.add_argument("--faults", type=_faults, default=(), metavar="KIND,...", help="only these (default: all)")
    parser.add_argument("--few-clients", action="store_true", help="one of each kind, for a run of a minute")
    parser.add_argument("--on-loopback", action="store_true", help="no network and no disks of its own")
    parser.add_argument("--directory", type=Path, help="for data, logs and history (default: a new temporary one)")
    parser.add_argument("--verify", type=Path, metavar="HISTORY", help="only judge the history of an earlier run")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON; progress is on standard error")
    return parser


if __name__ == "__main__":
    sys.exit(main())
