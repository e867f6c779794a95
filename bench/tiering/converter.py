"""Runs the driver of the pipeline again and again in one Spark, so that Spark's start is not part of a conversion.

    python -m bench.tiering.converter BOOTSTRAP MASTER

It prints a line of JSON for each event of the driver, waits for the name of a topic on each line of its input, and
converts what is eligible of it. The end of the input ends it.
"""

from __future__ import annotations

import sys
from typing import Final

from strandline.pipeline.driver.lines import LineReporter, say_end
from strandline.pipeline.driver.running import RunOptions, run
from strandline.pipeline.session import SparkOptions, open_session

READY: Final = "ready"


def main() -> int:
    bootstrap, master = sys.argv[1:]
    spark = SparkOptions(master=master, has_ui=False)
    reporter = LineReporter(as_json=True)
    with open_session(spark):
        reporter.say(READY, "Spark has started.")
        for line in sys.stdin:
            end = run(RunOptions(bootstrap=bootstrap, topics=(line.strip(),), spark=spark), reporter)
            say_end(reporter, end, is_following=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
