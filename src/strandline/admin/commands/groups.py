"""`strandline groups`: the consumer groups, their members, committed offsets and lag."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, print_json, print_line, print_table
from strandline.client import LATEST, Cluster, CommandFailed, Json, check, list_offsets, sentences
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.consumer_protocol_assignment import read_consumer_protocol_assignment
from strandline.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from strandline.wire.messages.list_groups import ListGroupsRequest
from strandline.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from strandline.wire.primitives import MalformedRequest

groups_app = typer.Typer(help="List and describe consumer groups.", no_args_is_help=True)
# Later versions name topics by id only.
_LAST_WITH_TOPIC_NAMES = 9
_FIRST_WITH_GROUPS = 8

_CONSUMER_PROTOCOL: Final = "consumer"
# An assignment begins with its version. Later versions only append fields, so the oldest one reads all of them.
_OLDEST_VERSION: Final = 0
_VERSION_BYTES: Final = 2


@groups_app.command("list")
def list_groups(bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """List the groups of all brokers.

    Example: strandline groups list
    """
    found: list[Any] = []
    with sentences(), Cluster(bootstrap) as cluster:
        for node_id in cluster.brokers():
            answer = cluster.broker(node_id).request(ApiKey.LIST_GROUPS, ListGroupsRequest())
            check(answer.error_code, None, f"Broker {node_id} cannot list its groups")
            found += answer.groups
    found.sort(key=lambda group: str(group.group_id))
    rows = [
        {"group": row.group_id, "state": row.group_state, "type": row.group_type, "protocol": row.protocol_type}
        for row in found
    ]
    if as_json:
        print_json(rows)
        return
    columns = ("group", "state", "type", "protocol")
    print_table(columns, [tuple(row.values()) for row in rows], empty="There are no groups.")


@groups_app.command("describe")
def describe_group(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The id of the group.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show a group: its state, its members, and for each partition the committed offset and the lag.

    Example: strandline groups describe billing
    """
    with sentences(), Cluster(bootstrap) as cluster:
        coordinator = cluster.coordinator(group)
        described = coordinator.request(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group])).groups[0]
        check(described.error_code, described.error_message, f"Group {group} cannot be described")
        committed = _committed(coordinator, group)
        ends = _end_offsets(cluster, {topic for topic, _ in committed})
    if described.group_state == "Dead" and not committed:
        raise CommandFailed(f"There is no group {group}.")
    owners = {pair: member["member"] for member in _members(described) for pair in member["assignment"]}
    offsets = [_progress(pair, offset, ends.get(pair), owners.get(pair)) for pair, offset in sorted(committed.items())]
    if as_json:
        members = [{**row, "assignment": [list(pair) for pair in row["assignment"]]} for row in _members(described)]
        print_json({"group": group, "state": described.group_state, "members": members, "offsets": offsets})
        return
    _print(group, described, offsets)


def _print(group: str, described: DescribedGroup, offsets: list[Json]) -> None:
    protocol = f", assignor {described.protocol_data}" if described.protocol_data else ""
    print_line(f"{group}  {described.group_state}{protocol}")
    members = [
        (
            row["member"],
            row["client"],
            row["host"],
            " ".join(f"{topic}-{number}" for topic, number in row["assignment"]),
        )
        for row in _members(described)
    ]
    print_table(("member", "client", "host", "partitions"), members, empty="No members.")
    rows = [tuple(row.values()) for row in offsets]
    print_table(("topic", "partition", "committed", "end", "lag", "member"), rows, empty="No committed offsets.")


def _members(described: DescribedGroup) -> list[Json]:
    return [
        {
            "member": member.member_id,
            "instance": member.group_instance_id,
            "client": member.client_id,
            "host": member.client_host,
            "assignment": assigned_partitions(described.protocol_type, member.member_assignment),
        }
        for member in described.members
    ]


def assigned_partitions(protocol_type: str, assignment: bytes) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of a consumer's assignment; none if the bytes are of another protocol or broken."""
    if protocol_type != _CONSUMER_PROTOCOL or not assignment:
        return []
    try:
        message, _ = read_consumer_protocol_assignment(memoryview(assignment), _VERSION_BYTES, _OLDEST_VERSION)
    except MalformedRequest:
        return []
    return sorted((row.topic, partition) for row in message.assigned_partitions for partition in row.partitions)


def _progress(pair: tuple[str, int], committed: int, end: int | None, member: str | None) -> Json:
    lag = None if end is None else max(end - committed, 0)
    return {
        "topic": pair[0],
        "partition": pair[1],
        "committed": committed,
        "end": end,
        "lag": lag,
        "member": member,
    }


def _committed(coordinator: Client, group: str) -> dict[tuple[str, int], int]:
    version = min(_LAST_WITH_TOPIC_NAMES, coordinator.version_of(ApiKey.OFFSET_FETCH))
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
    request = OffsetFetchRequest(group_id=group, topics=None, groups=[wanted])
    answer = coordinator.request(ApiKey.OFFSET_FETCH, request, version=version)
    holder = answer.groups[0] if version >= _FIRST_WITH_GROUPS else answer
    check(holder.error_code, None, f"The offsets of group {group} cannot be read")
    return {
        (topic.name, row.partition_index): row.committed_offset
        for topic in holder.topics
        for row in topic.partitions
        if row.error_code == ErrorCode.NONE and row.committed_offset >= 0
    }


def _end_offsets(cluster: Cluster, topics: set[str]) -> dict[tuple[str, int], int]:
    if not topics:
        return {}
    leaders = {
        (str(topic.name), row.partition_index): row.leader_id
        for topic in cluster.metadata(topics).topics
        for row in topic.partitions
        if row.leader_id >= 0
    }
    return list_offsets(cluster, leaders, LATEST)
