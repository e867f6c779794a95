"""`strandline configs`: shows which settings are in force and where they come from, and changes them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, print_json, print_line, print_table
from strandline.client import (
    BROKER,
    TOPIC,
    Cluster,
    CommandFailed,
    Json,
    check,
    described,
    parse_assignments,
    sentences,
)
from strandline.config.describe import ConfigSource
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

configs_app = typer.Typer(help="Describe and alter settings of topics and brokers.", no_args_is_help=True)

_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
Topic = Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Settings of a topic.")]
Broker = Annotated[
    str | None,
    typer.Option("--broker", metavar="ID", help="Settings of a broker; 'all': dynamic ones of all brokers."),
]
Pairs = list[str] | None


@configs_app.command("describe")
def describe_configs(
    topic: Topic = None,
    broker: Broker = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    everything: Annotated[bool, typer.Option("--all", help="Also settings that have their default values.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show settings, the source of each, and what would hold without it.

    Examples: strandline configs describe --topic orders; strandline configs describe --broker 1 --all
    """
    kind, name = _resource(topic, broker)
    with sentences(), Cluster(bootstrap) as cluster:
        entries = [_as_json(row) for row in described(_asked(cluster, kind, name), kind, name)]
    if not everything:
        entries = [entry for entry in entries if entry["source"] != ConfigSource.DEFAULT_CONFIG.name]
    if as_json:
        print_json(entries)
        return
    rows = [(entry["name"], _shown(entry), entry["source"], _otherwise(entry)) for entry in entries]
    empty = "Nothing is set; --all shows the defaults."
    print_table(("setting", "value", "source", "otherwise"), rows, empty=empty)


@configs_app.command("alter")
def alter_configs(
    topic: Topic = None,
    broker: Broker = None,
    assign: Annotated[Pairs, typer.Option("--set", metavar="NAME=VALUE", help="Give a setting a value.")] = None,
    delete: Annotated[
        Pairs, typer.Option("--delete", metavar="NAME", help="Remove a value, so that the next source applies.")
    ] = None,
    append: Annotated[Pairs, typer.Option("--append", metavar="NAME=VALUE", help="Add to a list.")] = None,
    subtract: Annotated[Pairs, typer.Option("--subtract", metavar="NAME=VALUE", help="Take out of a list.")] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only say whether it would work.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change settings: all of the changes, or none.

    Example: strandline configs alter --topic orders --set retention.ms=86400000 --delete segment.bytes
    """
    kind, name = _resource(topic, broker)
    changes = [
        AlterableConfig(name=key, config_operation=operation, value=value)
        for operation, option, entries in (
            (_SET, "--set", assign),
            (_APPEND, "--append", append),
            (_SUBTRACT, "--subtract", subtract),
        )
        for key, value in parse_assignments(entries or (), option=option).items()
    ]
    changes += [AlterableConfig(name=key, config_operation=_DELETE, value=None) for key in delete or ()]
    if not changes:
        raise CommandFailed("There is nothing to change: give --set, --delete, --append or --subtract.")
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    with sentences(), Cluster(bootstrap) as cluster:
        client = cluster.controller() if kind == TOPIC or not name else cluster.broker(int(name))
        result = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses[0]
    check(result.error_code, result.error_message, "Nothing was changed")
    done = "would be accepted" if validate_only else "made"
    if as_json:
        print_json({"changes": len(changes), "validate_only": validate_only})
    else:
        print_line(f"{len(changes)} {'change' if len(changes) == 1 else 'changes'} {done}.")


def topic_overrides(cluster: Cluster, topic: str) -> dict[str, str]:
    """The settings that are set on the topic itself."""
    rows = described(cluster.any(), TOPIC, topic)
    own = [row for row in rows if row.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG]
    return {row.name: row.value or "" for row in sorted(own, key=lambda row: str(row.name))}


def effective_topic_setting(cluster: Cluster, topic: str, name: str) -> str | None:
    """The value that is in force for a topic, as the controller has it; None if there is no such setting."""
    rows = described(cluster.controller(), TOPIC, topic)
    return next((row.value for row in rows if row.name == name), None)


def set_topic_setting(cluster: Cluster, topic: str, name: str, value: str, *, validate_only: bool) -> Any:
    """Give a setting of a topic a value; the controller's answer, which may be an error."""
    change = AlterableConfig(name=name, config_operation=_SET, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return cluster.controller().request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses[0]


def _resource(topic: str | None, broker: str | None) -> tuple[int, str]:
    if (topic is None) == (broker is None):
        raise CommandFailed("Give either --topic or --broker.")
    if topic is not None:
        return TOPIC, topic
    if broker != "all" and not str(broker).isdigit():
        raise CommandFailed(f"--broker must be the id of a broker or 'all', but is {broker!r}.")
    return BROKER, "" if broker == "all" else str(broker)


def _asked(cluster: Cluster, kind: int, name: str) -> Client:
    # Only the broker itself knows the settings it was started with.
    return cluster.broker(int(name)) if kind == BROKER and name else cluster.any()


def _as_json(row: Any) -> Json:
    return {
        "name": row.name,
        "value": row.value,
        "source": _source(row.config_source),
        "read_only": row.read_only,
        "sensitive": row.is_sensitive,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": _source(synonym.source)}
            for synonym in row.synonyms
        ],
    }


def _source(code: int) -> str:
    try:
        return ConfigSource(code).name
    except ValueError:
        return f"SOURCE_{code}"


def _shown(entry: Json) -> str:
    return "(hidden)" if entry["sensitive"] else str(entry["value"])


def _otherwise(entry: Json) -> str:
    return ", ".join(f"{synonym['name']}={synonym['value']}" for synonym in entry["synonyms"][1:])
