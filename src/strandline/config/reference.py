"""Writes the reference page of all settings: `python -m strandline.config.reference [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from strandline.config.client_metrics import CLIENT_METRICS_DECLARATIONS
from strandline.config.declare import Declaration, SettingKind, declarations_of
from strandline.config.group import GROUP_DECLARATIONS
from strandline.config.migration_state import MIGRATION_STATE
from strandline.config.names import IGNORED
from strandline.config.settings import AREAS
from strandline.config.share_group import SHARE_GROUP_DECLARATIONS
from strandline.config.topic import TOPIC_DECLARATIONS
from strandline.model import INT32_MAX, INT64_MAX

_TITLES: Final[Mapping[str, str]] = {
    "cluster": "The broker and its cluster",
    "network": "Network",
    "log": "Log and compaction",
    "replication": "Replication",
    "groups": "Consumer groups",
    "share_groups": "Members of share groups",
    "sharing": "Delivery to share groups",
    "transactions": "Producers and transactions",
    "diskless": "Diskless topics",
    "tiers": "Tiered storage",
    "tiering": "Conversion of diskless batches into tiered segments",
    "admin": "HTTP and metrics of clients",
}
_LARGE: Final[Mapping[object, str]] = {
    INT32_MAX: "2147483647",
    INT64_MAX: "9223372036854775807",
    1.7976931348623157e308: "no limit",
}
_INTRODUCTION: Final = """\
# Settings

This page is generated from the declarations in `src/strandline/config` (`make docs`); do not edit it.

Settings have Kafka's names. Those that Kafka does not have begin with `strandline.`, or with `diskless.` and `inkless.`
where they are about diskless topics. They are given

- in a `.properties` file: `strandline broker --config FILE`,
- one by one: `strandline broker --set name=value`, which wins over the file,
- by a short option: `--data-dir` (`strandline.data.dir`), `--listen` (`listeners`), `--http`
  (`strandline.http.listen`), `--node-id` (`node.id`), which win over both.

A broker does not start with an unknown name or a value outside its range; the error names the setting and its legal
values. Broker settings marked *cluster-wide* or *per-broker* can be changed while the broker runs, with any Kafka tool
or `strandline configs alter`; those marked *read-only* need a restart. A topic without a value of its own follows the
broker setting named beside it. The first of these that is set wins: topic, dynamic setting of the broker, dynamic
setting of all brokers, file, default.
"""


def render() -> str:
    """The whole page, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Topics"
    yield ""
    yield "| setting | type | default | may be | follows | meaning |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for declaration in _by_name({**TOPIC_DECLARATIONS, MIGRATION_STATE.name: MIGRATION_STATE}):
        follows = f"`{declaration.broker_name}`" if declaration.broker_name else ""
        yield _row(declaration, follows)
    yield ""
    yield "## Subscriptions to metrics of clients"
    yield ""
    yield "The resource `client-metrics` of `kafka-configs` (KIP-714); `/metrics` shows what clients push."
    yield ""
    yield "| setting | type | default | may be | change | meaning |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for declaration in _by_name(CLIENT_METRICS_DECLARATIONS):
        yield _row(declaration, "at any time")
    yield ""
    yield "## Groups"
    yield ""
    yield "Set on resources of type GROUP. A value outside the limits of the broker is refused."
    yield ""
    yield "| setting | type | default | may be | follows | meaning |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for declaration in _by_name({**GROUP_DECLARATIONS, **SHARE_GROUP_DECLARATIONS}):
        yield _row(declaration, f"`{declaration.broker_name}`" if declaration.broker_name else "")
    for key, area in AREAS.items():
        yield ""
        yield f"## {_TITLES[key]}"
        yield ""
        yield "| setting | type | default | may be | change | meaning |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for declaration in _by_name(declarations_of(area)):
            yield _row(declaration, declaration.dynamic.value)
    yield ""
    yield "## Accepted and ignored"
    yield ""
    yield "Kafka's files may have these. They have no effect here, and the broker logs that when it starts."
    yield ""
    yield "| setting | because |"
    yield "| --- | --- |"
    for name, reason in sorted(IGNORED.items()):
        yield f"| `{name}` | {reason} |"


def _by_name(declared: Mapping[str, Declaration]) -> Sequence[Declaration]:
    return [declared[name] for name in sorted(declared)]


def _row(declaration: Declaration, extra: str) -> str:
    cells = (
        f"`{declaration.name}`",
        declaration.kind.name.lower(),
        _default(declaration),
        _legal(declaration),
        extra,
        declaration.documentation.replace("|", "\\|"),
    )
    return "| " + " | ".join(cells) + " |"


def _default(declaration: Declaration) -> str:
    if declaration.default is None:
        return "not set"
    text = _LARGE.get(declaration.default) or declaration.text_of(declaration.default)
    return f"`{text}`" if text else "empty"


def _legal(declaration: Declaration) -> str:
    if declaration.kind in (SettingKind.INT, SettingKind.SHORT, SettingKind.LONG, SettingKind.DOUBLE):
        return _legal_number(declaration)
    if declaration.allowed:
        return ", ".join(f"`{value}`" for value in declaration.allowed)
    return "true, false" if declaration.kind is SettingKind.BOOLEAN else ""


def _legal_number(declaration: Declaration) -> str:
    also = "".join(f", or {value}" for value in declaration.also)
    least, most = declaration.least, declaration.most
    if least is None and most is None:
        return "any"
    if most is None:
        return f"≥ {least}{also}"
    return f"{least} to {most}{also}"


def main(arguments: Sequence[str]) -> None:
    """Write the page to the file named, or to standard output."""
    if arguments:
        Path(arguments[0]).write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main(sys.argv[1:])
