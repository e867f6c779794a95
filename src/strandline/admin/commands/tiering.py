"""`strandline tiering`: how far diskless topics are converted into tiered segments; pauses, resumes and triggers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final

import typer

from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, print_json, print_line, print_table
from strandline.admin.commands.tiering_run import tiering_package, tiering_run
from strandline.admin.text import size, timestamp
from strandline.conversion_api.codec import encode
from strandline.conversion_api.values import PartitionTieringStatus, TieringStatus
from strandline.pipeline.client import TieringClient

tiering_app = typer.Typer(
    help="Convert aged records of diskless topics into tiered segments, and look at it.", no_args_is_help=True
)

Topics = Annotated[list[str], typer.Argument(metavar="TOPIC", help="Diskless topics.", show_default=False)]
_PATIENCE_S: Final = 5.0
_CELLS: Final = 10
_COLUMNS: Final = ("converted", "boundary", "end", "to split", "eligible", "to merge", "not converted")


tiering_app.command("run")(tiering_run)
tiering_app.command("package")(tiering_package)


@tiering_app.command("status")
def status(
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC", help="All diskless topics without it.")] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show how far topics are converted. Offsets below the boundary are read from segments.

    Rows to split are old enough for it, or were triggered; files to merge wait until they make a segment. Of one topic,
    all partitions are shown.

    Examples: strandline tiering status; strandline tiering status orders --json
    """
    with TieringClient(bootstrap, timeout_s=_PATIENCE_S) as client:
        found = client.statuses(topics or ())
    if as_json:
        print_json(encode(found))
    elif len(found) == 1 and topics:
        _print_topic(found[0])
    else:
        rows = [(one.topic_name, _state(one), *_figures(one)) for one in found]
        print_table(("topic", "state", *_COLUMNS), rows, empty="There is no diskless topic.")


@tiering_app.command("trigger")
def trigger(topics: Topics, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Let everything that topics have by now be converted, whatever its age. strandline tiering run does it.

    Example: strandline tiering trigger orders
    """

    def sentence(done: TieringStatus) -> str:
        what = f"{done.pending_batches_count} rows ({size(done.eligible_bytes)}) are to be split"
        paused = f" It is paused: strandline tiering resume {done.topic_name}" if done.is_paused else ""
        return f"Topic {done.topic_name} is converted up to now, whatever its age: {what}.{paused}"

    with TieringClient(bootstrap, timeout_s=_PATIENCE_S) as client:
        _tell(map(client.trigger, topics), sentence, as_json=as_json)


@tiering_app.command("pause")
def pause(topics: Topics, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Convert nothing more of topics until they are resumed. Segments that have begun are finished.

    Example: strandline tiering pause orders
    """
    with TieringClient(bootstrap, timeout_s=_PATIENCE_S) as client:
        _tell(
            map(client.pause, topics),
            lambda done: f"Topic {done.topic_name} is paused. Go on: strandline tiering resume {done.topic_name}",
            as_json=as_json,
        )


@tiering_app.command("resume")
def resume(topics: Topics, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Convert topics again that were paused.

    Example: strandline tiering resume orders
    """
    with TieringClient(bootstrap, timeout_s=_PATIENCE_S) as client:
        _tell(
            map(client.resume, topics),
            lambda done: f"Topic {done.topic_name} is converted again: {size(done.eligible_bytes)} are old enough.",
            as_json=as_json,
        )


def _tell(done: Iterable[TieringStatus], sentence: Callable[[TieringStatus], str], *, as_json: bool) -> None:
    """What was done, topic by topic: of several, the first may be done when the second is refused."""
    if as_json:
        print_json([encode(one) for one in done])
        return
    for one in done:
        print_line(sentence(one))


def _print_topic(topic: TieringStatus) -> None:
    triggered = ""
    if topic.triggered_at_ms is not None:
        moment = timestamp(topic.triggered_at_ms).partition(".")[0]
        triggered = f", all that was written before {moment} UTC whatever its age"
    print_line(f"{topic.topic_name}: {_state(topic)}{triggered}.")
    rows = [(one.partition, *_figures(one)) for one in topic.partitions]
    print_table(("partition", *_COLUMNS), rows, empty="")


def _state(topic: TieringStatus) -> str:
    if topic.is_paused:
        return "paused"
    return "converting" if topic.pending_batches_count or topic.pending_split_files_count else "up to date"


def _figures(status: TieringStatus | PartitionTieringStatus) -> Sequence[object]:
    return (
        ruler(status.diskless_start_offset, status.high_watermark),
        status.diskless_start_offset,
        status.high_watermark,
        status.pending_batches_count,
        size(status.eligible_bytes),
        status.pending_split_files_count,
        size(status.lag_bytes),
    )


def ruler(boundary: int, end: int) -> str:
    """Which part of all offsets is converted, as a bar and a number."""
    part = boundary / end if end else 0.0
    full = int(part * _CELLS)
    return f"{'█' * full}{'░' * (_CELLS - full)} {int(part * 100)} %"
