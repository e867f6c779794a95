"""`python -m differential`: a run, and what was different. Ends with 1 if anything was."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.asking import Refused
from bench.process import ProcessFailed
from bench.tree import TreeFailed

from differential import report
from differential.run import Wanted, run
from differential.topics import KINDS

_EXAMPLE = """\
example:
  python -m differential --against HEAD~20 --seconds 600 --seed 7
  python -m differential --against v0.1 --steps 2000 --kinds switched,converted --json

Starts one broker of the other commit and one of the working tree on the loopback interface, brings partitions of each
kind into the same state in both, and sends both the same random requests. docs/differential.md says what is compared.
The seed and the number of the step repeat a difference: --steps as many as were made, --kinds the same.
status: 0 without differences, 1 with some, 2 if the run could not be made.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C: the brokers have to end
    directory = options.directory or Path(tempfile.mkdtemp(prefix="strandline-differential-"))
    wanted = Wanted(
        against=options.against,
        seed=options.seed,
        kinds=options.kinds,
        directory=directory,
        steps=options.steps,
        seconds=options.seconds,
        restart_every=options.restart_every,
        has_cache=options.cache,
    )
    try:
        findings = run(wanted, _say)
    except KeyboardInterrupt:
        print("Stopped; there is no verdict.", file=sys.stderr)
        return 130
    except (OSError, TreeFailed, ProcessFailed, Refused, AssertionError) as error:
        print(f"The run could not be made: {error}\nLogs and data: {directory}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.to_json(findings, wanted), indent=2))
    else:
        print("\n".join(report.lines(findings, wanted)))
    if findings.differences:
        _say(f"logs and data: {directory}")
    elif options.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if findings.differences else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _kinds(text: str) -> list[str]:
    kinds = text.split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"{kind!r} is not one of {', '.join(KINDS)}")
    return kinds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m differential",
        description="Send the same requests to a broker of another commit and to one of the working tree, and compare.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--against", metavar="REV", default="HEAD", help="the other commit (default: HEAD)")
    parser.add_argument("--seed", type=int, default=1, help="decides every request (default: 1)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=120.0, help="how long requests are sent (default: 120)")
    length.add_argument("--steps", type=int, metavar="N", help="so many random moves instead, of one or more requests")
    kinds = ",".join(KINDS)
    parser.add_argument("--kinds", type=_kinds, default=[*KINDS], metavar=kinds, help="of partitions (default: all)")
    parser.add_argument("--restart-every", type=int, default=500, metavar="N", help="moves between two SIGKILLs (500)")
    parser.add_argument(
        "--cache", action="store_true", help="brokers keep diskless records in memory; sizes of answers may differ then"
    )
    parser.add_argument("--directory", type=Path, help="for data and logs (default: a new temporary one)")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
