"""`strandline tiering run`: the pipeline that converts diskless batches, on Spark; and what a cluster needs for it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, console, print_json, print_line
from strandline.client import CommandFailed
from strandline.config import load_properties
from strandline.errors import InvalidConfig

if TYPE_CHECKING:
    from strandline.pipeline.driver.lines import LineReporter

_MASTER = "local[*]"


def tiering_run(
    once: Annotated[bool, typer.Option("--once", help="Convert what is eligible now, and end.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until it is stopped with Ctrl-C or SIGTERM.")] = False,
    master: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where Spark runs: local[4], local[*] (all cores of this machine), spark://HOST:PORT."
        ),
    ] = _MASTER,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic; may be repeated.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .properties file with what brokers do not tell, such as passwords of stores."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Spark's own web page, on port 4040 or the next.")] = True,
    start_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long Spark may take to start and to run a first task.")
    ] = 120.0,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long brokers may be silent before a request has failed.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each event.")] = False,
) -> None:
    """Convert aged batches of diskless topics into tiered segments, on Spark.

    Several may run at a time. Needs Java 17 and: pip install 'strandline[spark]'.

    Example: strandline tiering run --once --bootstrap 127.0.0.1:9092
    """
    if once == follow:
        raise CommandFailed("Say either --once (convert what is eligible now) or --follow (go on).")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    # Spark's side of the package is loaded by this command only.
    from strandline.pipeline.driver.lines import LineReporter, say_end
    from strandline.pipeline.driver.running import RunOptions, run
    from strandline.pipeline.errors import PipelineFailed
    from strandline.pipeline.session import SparkOptions

    reporter: LineReporter = LineReporter(as_json=True) if as_json else _reporter()
    try:
        options = RunOptions(
            bootstrap=bootstrap,
            is_following=follow,
            topics=tuple(topic or ()),
            properties=load_properties(config) if config is not None else {},
            spark=SparkOptions(master=master, has_ui=ui, conf=_assignments(conf or []), start_seconds=start_timeout),
            broker_seconds=timeout,
        )
        end = run(options, reporter)
    except (PipelineFailed, InvalidConfig) as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(f"The pipeline cannot run: {error}.") from error
    if status := say_end(reporter, end, is_following=follow):
        raise typer.Exit(status)


def tiering_package(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put the files.")],
    as_json: AsJson = False,
) -> None:
    """Write what spark-submit needs to run the pipeline on a cluster: strandline.zip and submit.py.

    Example: strandline tiering package /tmp/strandline-for-spark
    """
    from strandline.pipeline.packaging import make_package

    try:
        made = make_package(directory)
    except OSError as error:
        raise CommandFailed(f"The package cannot be written: {error}.") from error
    if as_json:
        print_json({"archive": str(made.archive), "program": str(made.program)})
        return
    print_line(f"Written: {made.archive} and {made.program}.")
    print_line(
        f"Submit it with: spark-submit --master spark://HOST:7077 --py-files {made.archive} {made.program} --once "
        "--bootstrap HOST:PORT"
    )
    print_line("The Python of the executors needs crc32c, cramjam and obstore: see docs/tiering.md.")


def _assignments(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise CommandFailed(f"--conf needs spark.NAME=VALUE, but was given {text!r}.")
        found[name] = value
    return found


def _reporter() -> LineReporter:
    from strandline.pipeline.driver.lines import LineReporter

    if not sys.stdout.isatty():
        return LineReporter(as_json=False)
    from strandline.admin.commands.tiering_progress import ProgressReporter

    return ProgressReporter(console())
