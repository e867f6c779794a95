"""The pipeline as a program for spark-submit, or for Python: `python -m strandline.pipeline.submit`.

The master, memory and everything else of Spark are what spark-submit is given. docs/tiering.md has examples.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from strandline.client import CommandFailed
from strandline.config import load_properties
from strandline.errors import InvalidConfig
from strandline.pipeline.driver.lines import EXIT_FAILED, LineReporter, say_end
from strandline.pipeline.driver.running import RunOptions, run
from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.session import SparkOptions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until everything is converted, or until it is stopped; the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    reporter = LineReporter(as_json=options.json)
    try:
        properties = load_properties(options.config) if options.config else {}
        end = run(
            RunOptions(
                bootstrap=options.bootstrap,
                is_following=options.follow,
                topics=tuple(options.topic),
                properties=properties,
                spark=SparkOptions(master=options.master),
                broker_seconds=options.timeout,
            ),
            reporter,
        )
    except (CommandFailed, PipelineFailed, InvalidConfig, OSError) as error:
        print(f"strandline: {error}", file=sys.stderr)
        return EXIT_FAILED
    return say_end(reporter, end, is_following=options.follow)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="submit.py",
        description="Convert aged batches of diskless topics into tiered segments.",
        epilog="example: spark-submit --master spark://host:7077 --py-files strandline.zip submit.py "
        "--follow --bootstrap broker:9092",
        allow_abbrev=False,
    )
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--once", action="store_true", help="convert what is eligible now, and end")
    how.add_argument("--follow", action="store_true", help="go on until it is stopped")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", required=True, help="brokers of the cluster")
    parser.add_argument("--topic", metavar="NAME", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="a .properties file with what brokers do not tell, such as passwords",
    )
    parser.add_argument("--master", metavar="URL", help="where Spark runs (default: as spark-submit says)")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=60.0, help="how long brokers may be silent (default: 60)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each event")
    return parser


if __name__ == "__main__":
    sys.exit(main())
