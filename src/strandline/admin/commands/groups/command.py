"""`strandline groups`: lists and describes groups of all kinds, and deletes them or their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from strandline.admin.commands.groups.kinds import CLASSIC, CONSUMER, SHARE, STREAMS, GroupView, describe
from strandline.admin.commands.groups.offsets import GroupOffset, delete_offsets, group_offsets
from strandline.admin.commands.groups.reset import AllTopics, Topics, reset_offsets
from strandline.admin.commands.groups.scope import parse_scope, within_scope
from strandline.admin.commands.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    confirm,
    print_json,
    print_line,
    print_table,
    warn_of_missing,
)
from strandline.client import (
    LATEST,
    Cluster,
    CommandFailed,
    Json,
    Pair,
    check,
    explain,
    list_offsets,
    partition_leaders,
    sentences,
)
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.list_groups import ListGroupsRequest

groups_app = typer.Typer(help="List, describe and delete groups; reset and delete their offsets.", no_args_is_help=True)
groups_app.command("reset-offsets")(reset_offsets)
GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="The id of the group.")]
_GROUPS_TOPIC: Final = "__consumer_offsets"
_NOTHING_DELETED: Final = "Nothing was deleted."
_HINTS: Final[Mapping[int, str]] = {ErrorCode.NON_EMPTY_GROUP: "It has members; stop them first"}
_KINDS: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)
_STATES: Final = (
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady", "Dead",
)  # fmt: skip
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@groups_app.command("list")
def list_groups(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only groups in this state, like Empty.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="classic, consumer, share or streams.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the groups of all brokers, of every type.

    Example: strandline groups list --state Empty
    """
    _check_choice("--state", state, _STATES)
    _check_choice("--type", kind, _KINDS)
    found: list[Any] = []
    with sentences(), Cluster(bootstrap) as cluster:
        for node_id in cluster.brokers():
            answer = cluster.ask_loaded(node_id, ApiKey.LIST_GROUPS, ListGroupsRequest())
            check(answer.error_code, None, f"Broker {node_id} cannot list its groups")
            found += answer.groups
        warn_of_missing("Groups", cluster, _GROUPS_TOPIC)
    found.sort(key=lambda group: str(group.group_id))
    rows = [
        {"group": row.group_id, "state": row.group_state, "type": row.group_type, "protocol": row.protocol_type}
        for row in found
        if _is_one_of(row.group_state, state) and _is_one_of(row.group_type, kind)
    ]
    if as_json:
        print_json(rows)
        return
    columns = ("group", "state", "type", "protocol")
    empty = "No group is as asked for." if found else "There are no groups."
    print_table(columns, [tuple(row.values()) for row in rows], empty=empty)


def _check_choice(option: str, wanted: list[str] | None, known: Sequence[str]) -> None:
    for text in wanted or ():
        if not _is_one_of(text, list(known)):
            raise CommandFailed(f"{option} must be one of {', '.join(known)}, but is {text!r}.")


def _is_one_of(value: str, wanted: list[str] | None) -> bool:
    # Chosen here and not by the broker: old brokers ignore filters.
    return not wanted or value.lower() in {text.lower() for text in wanted}


@groups_app.command("describe")
def describe_group(group: GroupId, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Show a group: its type and state, its members, and for each partition its offset and the lag.

    Partitions that a member has are shown, too, if the group has no offset of them yet. The offset of a share group is
    the one where it starts: everything before is done with.

    Example: strandline groups describe billing
    """
    with sentences(), Cluster(bootstrap) as cluster:
        coordinator = cluster.coordinator(group)
        view = describe(coordinator, group)
        offsets = group_offsets(coordinator, group, view)
        if view is None and not offsets:
            raise CommandFailed(f"There is no group {group}.")
        view = view or GroupView(group=group, kind="", state="Dead", assignor="", members=())
        owners = _owners(view)
        pairs = sorted(offsets.keys() | owners.keys())
        progress = _progress(pairs, owners, offsets, _end_offsets(cluster, {topic for topic, _ in pairs}))
    if as_json:
        print_json(
            {
                "group": group,
                "type": view.kind,
                "state": view.state,
                "assignor": view.assignor,
                "epoch": view.epoch,
                "members": [asdict(member) for member in view.members],
                "offsets": progress,
            }
        )
        return
    _print_group(view, progress)


def _print_group(view: GroupView, offsets: list[Json]) -> None:
    assignor = f", assignor {view.assignor}" if view.assignor else ""
    epoch = f", epoch {view.epoch}" if view.epoch is not None else ""
    print_line(f"{view.group}  {view.kind} group, {view.state}{assignor}{epoch}")
    members = [
        (row.member, row.client, row.host, " ".join(f"{topic}-{number}" for topic, number in row.assignment))
        for row in view.members
    ]
    print_table(("member", "client", "host", "partitions"), members, empty="No members.")
    rows = [tuple(row.values()) for row in offsets]
    offset = "start" if view.kind == SHARE else "committed"
    print_table(("topic", "partition", offset, "end", "lag", "member"), rows, empty="No committed offsets.")


def _owners(view: GroupView) -> dict[Pair, list[str]]:
    """The members that each partition is assigned to: several in a share group."""
    owners: dict[Pair, list[str]] = {}
    for member in view.members:
        for pair in member.assignment:
            owners.setdefault(pair, []).append(member.member)
    return owners


def _progress(
    pairs: Sequence[Pair],
    owners: Mapping[Pair, Sequence[str]],
    offsets: Mapping[Pair, GroupOffset],
    ends: Mapping[Pair, int],
) -> list[Json]:
    """Where the group is in each partition that it has an offset of, or that a member has, also without an offset."""
    return [
        {
            "topic": pair[0],
            "partition": pair[1],
            "committed": offsets[pair].offset if pair in offsets else None,
            "end": ends.get(pair),
            "lag": _lag(offsets.get(pair), ends.get(pair)),
            "member": ",".join(owners[pair]) if pair in owners else None,
        }
        for pair in pairs
    ]


def _lag(known: GroupOffset | None, end: int | None) -> int | None:
    if known is None or known.lag is not None:
        return None if known is None else known.lag
    return None if end is None else max(end - known.offset, 0)


def _end_offsets(cluster: Cluster, topics: set[str]) -> dict[Pair, int]:
    leaders = {pair: leader for pair, leader in partition_leaders(cluster, topics).items() if leader >= 0}
    return list_offsets(cluster, leaders, LATEST)


@groups_app.command("delete")
def delete_groups(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="The ids of the groups.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete groups with their offsets. Groups that have members are refused. It asks first.

    Example: strandline groups delete billing --yes
    """
    confirm(f"Delete {', '.join(groups)} with all offsets?", yes=yes, otherwise=_NOTHING_DELETED)
    codes: dict[str, int] = {}
    with sentences(), Cluster(bootstrap) as cluster:
        for group in dict.fromkeys(groups):
            request = DeleteGroupsRequest(groups_names=[group])
            answer = cluster.coordinator(group).request(ApiKey.DELETE_GROUPS, request)
            codes[group] = answer.results[0].error_code
    if as_json:
        print_json([{"group": group, "error": ErrorCode(code).name} for group, code in codes.items()])
    else:
        for group in (group for group, code in codes.items() if code == ErrorCode.NONE):
            print_line(f"Group {group} was deleted.")
    refused = [
        f"Group {group} was not deleted: {explain(code, _HINTS.get(code))}"
        for group, code in codes.items()
        if code != ErrorCode.NONE
    ]
    if refused:
        raise CommandFailed(" ".join(refused))


@groups_app.command("delete-offsets")
def delete_group_offsets(
    group: GroupId,
    topics: Topics = None,
    all_topics: AllTopics = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make a group forget its offsets of topics to which none of its members is subscribed. It asks first.

    Example: strandline groups delete-offsets billing --topic orders:0,1 --yes
    """
    if bool(topics) == all_topics:
        raise CommandFailed("Give either --topic or --all-topics.")
    scope = parse_scope(topics or ())
    with sentences(), Cluster(bootstrap) as cluster:
        coordinator = cluster.coordinator(group)
        view = describe(coordinator, group)
        offsets = group_offsets(coordinator, group, view)
        if not offsets:
            raise CommandFailed(f"Group {group} has no offsets.")
        # What the group has decides, not which topics exist: offsets of deleted topics can be deleted, too.
        absent = f"is not among those that group {group} has offsets of"
        pairs = sorted(offsets) if all_topics else within_scope(scope, offsets, missing=absent)
        question = f"Delete the offsets of group {group} for {len(pairs)} partitions?"
        confirm(question, yes=yes, otherwise=_NOTHING_DELETED)
        delete_offsets(coordinator, group, view, pairs)
    rows = [{"topic": topic, "partition": number, "deleted": offsets[topic, number].offset} for topic, number in pairs]
    if as_json:
        print_json({"group": group, "offsets": rows})
        return
    print_table(("topic", "partition", "deleted offset"), [tuple(row.values()) for row in rows], empty="Nothing.")
