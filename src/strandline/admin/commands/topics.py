"""`strandline topics`: list, create, alter, describe and delete; `topic_tiers` shows where the records are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from strandline.admin.commands.configs import topic_overrides
from strandline.admin.commands.migration_client import MigrationClient
from strandline.admin.commands.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    confirm,
    print_json,
    print_line,
    print_table,
)
from strandline.admin.commands.topic_kinds import TopicKind, topic_kinds
from strandline.admin.commands.topic_tiers import topic_tiers
from strandline.client import (
    EARLIEST,
    LATEST,
    Cluster,
    Json,
    check,
    list_offsets,
    parse_assignments,
    sentences,
)
from strandline.hybrid.switching.status import TopicMigrationStatus
from strandline.model import uuid_to_text
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.metadata import MetadataResponseTopic

topics_app = typer.Typer(help="List, create, alter, describe and delete topics.", no_args_is_help=True)
topics_app.command("tiers")(topic_tiers)
_TIMEOUT_MS = 30_000
_LISTED = {
    "topic": "topic",
    "kind": "kind",
    "state": "migration_state",
    "partitions": "partition_count",
    "replicas": "replication_factor",
    "id": "id",
}
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")]
TopicNames = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The names of the topics.")]


@topics_app.command("list")
def list_topics(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    internal: Annotated[bool, typer.Option("--internal", help="Include Kafka's own topics.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the topics, whether each is classic, tiered or diskless, and the state of diskless ones.

    Example: strandline topics list --internal
    """
    with sentences(), Cluster(bootstrap) as cluster:
        topics = [topic for topic in cluster.metadata(None).topics if internal or not topic.is_internal]
        topics.sort(key=lambda topic: topic.name or "")
        kinds = topic_kinds(cluster, [topic.name for topic in topics if topic.name])
    if as_json:
        print_json([_brief(topic, kinds) for topic in topics])
        return
    rows = [tuple(_brief(topic, kinds)[column] for column in _LISTED.values()) for topic in topics]
    print_table(tuple(_LISTED), rows, empty="There are no topics.")


@topics_app.command("create")
def create_topic(
    topic: TopicName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="How many; -1: num.partitions.")] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="How many replicas; -1: default.replication.factor.")
    ] = -1,
    config: Annotated[list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="A topic setting.")] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing topic is no error.")] = False,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only say whether it would work.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a topic.

    Example: strandline topics create orders -p 6 --config retention.ms=86400000
    """
    settings = parse_assignments(config or (), option="--config")
    wanted = CreatableTopic(
        name=topic,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in settings.items()],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS, validate_only=validate_only)
    with sentences(), Cluster(bootstrap) as cluster:
        result = cluster.controller().request(ApiKey.CREATE_TOPICS, request).topics[0]
    existed = result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    if not (existed and if_not_exists):
        check(result.error_code, result.error_message, f"Topic {topic} was not created")
    if as_json:
        print_json({"topic": topic, "created": not existed and not validate_only, "id": uuid_to_text(result.topic_id)})
    elif existed:
        print_line(f"Topic {topic} exists.")
    else:
        done = "could be created" if validate_only else "was created"
        print_line(f"Topic {topic} {done}: {result.num_partitions} partitions, {result.replication_factor} replicas.")


@topics_app.command("alter")
def alter_topic(
    topic: TopicName,
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="How many it is to have, all in all.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only say whether it would work.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add partitions to a topic. Settings are changed with: strandline configs alter.

    Records stay where they are, and keys may go to other partitions from then on. Partitions cannot be removed.

    Example: strandline topics alter orders --partitions 12
    """
    wanted = CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS, validate_only=validate_only)
    with sentences(), Cluster(bootstrap) as cluster:
        result = cluster.controller().request(ApiKey.CREATE_PARTITIONS, request).results[0]
    check(result.error_code, result.error_message, f"Topic {topic} was not changed")
    if as_json:
        print_json({"topic": topic, "partition_count": partitions, "validate_only": validate_only})
    else:
        print_line(f"Topic {topic} {'could have' if validate_only else 'has'} {partitions} partitions.")


@topics_app.command("describe")
def describe_topics(topics: TopicNames, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Show topics: kind, settings, leaders, replicas, and the offsets they hold. JSON of several is a list.

    Example: strandline topics describe orders payments
    """
    names = list(dict.fromkeys(topics))
    with sentences(), Cluster(bootstrap) as cluster:
        found = {row.name: row for row in cluster.metadata(names).topics}
        for name in names:
            check(found[name].error_code, None, f"Topic {name} cannot be described")
        kinds = topic_kinds(cluster, names)
        described = [_described(cluster, found[name], kinds) for name in names]
    if as_json:
        print_json(described if len(described) > 1 else described[0])
        return
    for topic in described:
        _print_described(topic)


def _described(cluster: Cluster, topic: MetadataResponseTopic, kinds: Mapping[str, TopicKind]) -> Json:
    name = topic.name or ""
    leaders = {(name, row.partition_index): row.leader_id for row in topic.partitions if row.leader_id >= 0}
    starts, ends = list_offsets(cluster, leaders, EARLIEST), list_offsets(cluster, leaders, LATEST)
    partitions = [
        {
            "partition": row.partition_index,
            "leader": row.leader_id,
            "leader_epoch": row.leader_epoch,
            "replicas": row.replica_nodes,
            "isr": row.isr_nodes,
            "start_offset": starts.get((name, row.partition_index)),
            "end_offset": ends.get((name, row.partition_index)),
        }
        for row in sorted(topic.partitions, key=lambda row: row.partition_index)
    ]
    described = {**_brief(topic, kinds), "configs": topic_overrides(cluster, name), "partitions": partitions}
    if name in kinds and kinds[name].has_two_parts:
        _add_switch(described, MigrationClient(cluster).status(name).status)
    return described


def _add_switch(described: Json, status: TopicMigrationStatus) -> None:
    """How far the topic is on its way to diskless, as far as brokers that can be reached know."""
    switched = {row.partition: row for row in status.partitions}
    described["migration_state"] = status.state
    for row in described["partitions"]:
        known = switched.get(row["partition"])
        row["diskless_from"] = known.b0 if known is not None and known.b0 >= 0 else None
        row["state"] = None if known is None else known.state


def _print_described(topic: Json) -> None:
    state = f" ({topic['migration_state']})" if topic["migration_state"] else ""
    internal = "  internal" if topic["internal"] else ""
    print_line(f"{topic['topic']}  {topic['kind']}{state}  id {topic['id']}{internal}")
    settings = ", ".join(f"{name}={value}" for name, value in topic["configs"].items())
    print_line(f"settings: {settings or 'all by default'}")
    columns: tuple[str, ...] = ("partition", "leader", "epoch", "replicas", "in sync", "from offset", "to offset")
    if any("diskless_from" in row for row in topic["partitions"]):
        columns += ("diskless from", "state")
    rows = [tuple(row.values()) for row in topic["partitions"]]
    print_table(columns, rows, empty="The topic has no partitions.")


@topics_app.command("delete")
def delete_topics(
    topics: TopicNames,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete topics with all their records. There is no way back, so it asks first.

    Example: strandline topics delete orders --yes
    """
    confirm(f"Delete {', '.join(topics)} with all records?", yes=yes, otherwise="Nothing was deleted.")
    with sentences(), Cluster(bootstrap) as cluster:
        controller = cluster.controller()
        request = DeleteTopicsRequest(
            topic_names=topics, topics=[DeleteTopicState(name=name) for name in topics], timeout_ms=_TIMEOUT_MS
        )
        results = controller.request(ApiKey.DELETE_TOPICS, request).responses
    if as_json:
        print_json([{"topic": row.name, "error": ErrorCode(row.error_code).name} for row in results])
    for row in results:
        check(row.error_code, row.error_message, f"Topic {row.name} was not deleted")
        if not as_json:
            print_line(f"Topic {row.name} was deleted.")


def _brief(topic: MetadataResponseTopic, kinds: Mapping[str, TopicKind]) -> Json:
    known = kinds.get(topic.name or "", TopicKind())
    return {
        "topic": topic.name,
        "kind": known.kind,
        "migration_state": known.state,
        "id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": _replicas(topic),
    }


def _replicas(topic: MetadataResponseTopic) -> int:
    return max((len(row.replica_nodes) for row in topic.partitions), default=0)
