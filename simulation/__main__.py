"""`python -m simulation`: runs of many seeds, or one seed again with its trace. Ends with 1 if there is a violation."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from simulation.mutants import MUTANTS, applied
from simulation.run import Outcome, run
from simulation.scenario import Scenario

_EXAMPLE = """\
example:
  python -m simulation --seeds 1000            a thousand clusters, a few minutes
  python -m simulation --seed 48               one of them again, step by step
  python -m simulation --seed 48 --keep /tmp/48     the same, and its log directories stay there
  python -m simulation --seeds 50 --mutant "a leader does not compare epochs"

A seed decides everything that happens, on every machine. Logs lie in /dev/shm.
status: 0 without violations, 1 with some.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    figures: Counter[str] = Counter()
    failed: list[Outcome] = []
    with applied(options.mutant) if options.mutant else nullcontext():
        for seed in range(options.seed, options.seed + options.seeds):
            outcome = run(Scenario.of_seed(seed, steps=options.steps), directory=options.keep)
            figures.update(
                messages=outcome.messages, elections=outcome.elections, acknowledged=outcome.acknowledged, runs=1
            )
            if options.seeds == 1:
                print("\n".join(outcome.trace))
            if outcome.violation:
                failed.append(outcome)
                print(f"seed {seed}: {outcome.violation}", flush=True)
    _tell(figures, failed, time.monotonic() - began)
    return 1 if failed else 0


def _tell(figures: Counter[str], failed: Sequence[Outcome], seconds: float) -> None:
    print(
        f"{figures['runs']} runs in {seconds:.1f} s ({figures['runs'] * 60 / seconds:.0f} a minute): "
        f"{figures['messages']} messages, {figures['elections']} leader epochs, {figures['acknowledged']} batches "
        f"acknowledged, {len(failed)} violations"
    )
    if failed:
        print(f"One of them again, with its trace: python -m simulation --seed {failed[0].seed}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulation",
        description="Runs clusters in one process, and breaks them.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds from there on (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="faults in each run (%(default)s)")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), metavar="RULE", help="with a rule that is wrong")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="a new directory in which the logs stay")
    return parser


if __name__ == "__main__":
    sys.exit(main())
