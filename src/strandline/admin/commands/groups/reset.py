"""`strandline groups reset-offsets`: says what a reset would do, and does it when told to."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from strandline.admin.commands.groups.kinds import GroupView, describe
from strandline.admin.commands.groups.offsets import GroupOffset, group_offsets, write_offsets
from strandline.admin.commands.groups.reset_plan import (
    Destination,
    PartitionBounds,
    PlannedOffset,
    ResetTarget,
    parse_duration,
    parse_moment,
    parse_rows,
    plan_reset,
)
from strandline.admin.commands.groups.scope import parse_scope, within_scope
from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, print_json, print_line, print_table
from strandline.client import EARLIEST, LATEST, Cluster, CommandFailed, Pair, list_offsets, partition_leaders, sentences
from strandline.clock import SystemClock

Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="A topic, or some partitions of it; may be repeated."),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="Every partition that the group has an offset of.")]


def reset_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The id of the group; it must have no members.")],
    topics: Topics = None,
    all_topics: AllTopics = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first offset of the log.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of the log.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To where it is; to the end of the log where it has no offset.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, metavar="OFFSET", help="To an offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="By a number of offsets; negative: back.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To a time, like 2026-03-01T12:30:00; UTC without a zone."),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option("--by-duration", metavar="DURATION", help="To this long ago, like P7D or PT12H.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", metavar="FILE", help="To rows topic,partition,offset of a file.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute/--dry-run", help="Do it; without, only the plan is printed.")
    ] = False,
    export: Annotated[bool, typer.Option("--export", help="Print the plan as a file for --from-file.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Move the offsets of a group. Without --execute it only prints what it would do.

    Offsets beyond the log become its first or last one, and the plan says so. A group with members is refused: stop its
    consumers first. A group that does not exist is created.

    Example: strandline groups reset-offsets billing --topic orders --to-datetime 2026-03-01T00:00:00 --execute
    """
    target = _target(
        group,
        flags={
            Destination.EARLIEST: to_earliest,
            Destination.LATEST: to_latest,
            Destination.CURRENT: to_current,
        },
        numbers={Destination.OFFSET: to_offset, Destination.SHIFT: shift_by},
        time_ms=_time_asked(to_datetime, by_duration),
        from_file=from_file,
    )
    if sum((bool(topics), all_topics, from_file is not None)) != 1:
        raise CommandFailed("Give either --topic, --all-topics or --from-file, which names the partitions itself.")
    with sentences(), Cluster(bootstrap) as cluster:
        coordinator = cluster.coordinator(group)
        view = describe(coordinator, group)
        _require_inactive(group, view)
        offsets = group_offsets(coordinator, group, view)
        leaders = _chosen(cluster, topics or (), target, offsets)
        plan = plan_reset(target, _bounds(cluster, leaders, target, offsets))
        if execute:
            write_offsets(coordinator, group, view, {(row.topic, row.partition): row.new for row in plan})
    _print_plan(group, plan, executed=execute, export=export, as_json=as_json)


def _time_asked(to_datetime: str | None, by_duration: str | None) -> int | None:
    if to_datetime is not None and by_duration is not None:
        raise CommandFailed("Give either --to-datetime or --by-duration.")
    # A time before 1970 would be one of the negative numbers that mean something else in ListOffsets.
    if to_datetime is not None:
        return max(parse_moment(to_datetime), 0)
    return None if by_duration is None else max(SystemClock().now_ms() - parse_duration(by_duration), 0)


def _target(
    group: str,
    *,
    flags: dict[Destination, bool],
    numbers: dict[Destination, int | None],
    time_ms: int | None,
    from_file: Path | None,
) -> ResetTarget:
    asked = [ResetTarget(destination=destination) for destination, is_asked in flags.items() if is_asked]
    asked += [
        ResetTarget(destination=destination, number=number)
        for destination, number in (numbers | {Destination.TIME: time_ms}).items()
        if number is not None
    ]
    if from_file is not None:
        asked.append(ResetTarget(destination=Destination.FILE, rows=_read_rows(from_file, group)))
    if len(asked) != 1:
        raise CommandFailed(
            "Say where to, once: --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, "
            "--by-duration or --from-file."
        )
    return asked[0]


def _read_rows(path: Path, group: str) -> dict[Pair, int]:
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return parse_rows(lines, group, name=str(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandFailed(f"{path} cannot be read: {error}.") from error


def _require_inactive(group: str, view: GroupView | None) -> None:
    if view is not None and not view.is_inactive:
        raise CommandFailed(
            f"The offsets of group {group} cannot be reset while it has members: it is {view.state}, with "
            f"{len(view.members)} of them. Stop its consumers, or wait until their sessions time out."
        )


def _chosen(
    cluster: Cluster, topics: Sequence[str], target: ResetTarget, offsets: dict[Pair, GroupOffset]
) -> dict[Pair, int]:
    """The leaders of the partitions that the command is about. Raises CommandFailed."""
    if topics:
        scope = parse_scope(topics)
        leaders = partition_leaders(cluster, scope)
        pairs = within_scope(scope, leaders, missing="does not exist")
    else:
        pairs = sorted(offsets if target.rows is None else target.rows)
        leaders = partition_leaders(cluster, {topic for topic, _ in pairs})
    if not pairs:
        raise CommandFailed("The group has no offsets. Name topics with --topic.")
    for topic, partition in pairs:
        if leaders.get((topic, partition), -1) < 0:
            why = "has no leader at the moment" if (topic, partition) in leaders else "does not exist"
            raise CommandFailed(f"Partition {partition} of topic {topic} {why}. Nothing was changed.")
    return {pair: leaders[pair] for pair in pairs}


def _bounds(
    cluster: Cluster, leaders: dict[Pair, int], target: ResetTarget, offsets: dict[Pair, GroupOffset]
) -> dict[Pair, PartitionBounds]:
    starts, ends = list_offsets(cluster, leaders, EARLIEST), list_offsets(cluster, leaders, LATEST)
    is_timed = target.destination is Destination.TIME
    found = list_offsets(cluster, leaders, target.number) if is_timed else {}
    bounds = {}
    for pair in leaders:
        if pair not in starts or pair not in ends or (is_timed and pair not in found):
            raise CommandFailed(f"The leader of {pair[0]}-{pair[1]} does not tell its offsets. Nothing was changed.")
        bounds[pair] = PartitionBounds(
            start=starts[pair],
            end=ends[pair],
            current=offsets[pair].offset if pair in offsets else None,
            at_time=found[pair] if is_timed and found[pair] >= 0 else None,
        )
    return bounds


def _print_plan(group: str, plan: Sequence[PlannedOffset], *, executed: bool, export: bool, as_json: bool) -> None:
    if export:
        csv.writer(sys.stdout, lineterminator="\n").writerows((row.topic, row.partition, row.new) for row in plan)
        return
    if as_json:
        print_json({"group": group, "executed": executed, "offsets": [asdict(row) for row in plan]})
        return
    rows = [(row.topic, row.partition, row.current, row.new, row.note or "") for row in plan]
    print_table(("topic", "partition", "current", "new", "note"), rows, empty="No partitions.")
    if executed:
        print_line(f"The offsets of group {group} were reset.")
    else:
        print_line("This is a dry run: nothing was changed. Run it again with --execute to do it.")
