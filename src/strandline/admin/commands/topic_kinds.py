"""Which kind of topic a topic is, by the settings that are in force for it, and the state of its switch.

The kind is classic, tiered or diskless: where its new records go, or are to go. A topic that was classic before, or has
converted records, is still diskless; that it has an older part says its state, MIGRATING or HYBRID.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from strandline.client import Cluster
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

# By the setting that makes a topic one. The first that is true decides.
_KINDS: Final = {"diskless.enable": "diskless", "remote.storage.enable": "tiered"}
_STATE: Final = "diskless.migration.state"
_TOPIC: Final = 2
_TWO_PARTS: Final = frozenset({"MIGRATING", "HYBRID"})


class TopicKind(NamedTuple):
    """What a topic is."""

    kind: str | None = None
    """None if the topic cannot be described."""
    state: str | None = None
    """Of a diskless topic: MIGRATING, HYBRID, DISKLESS_ONLY, or UNKNOWN while the database does not answer."""

    @property
    def has_two_parts(self) -> bool:
        """Whether partitions may have a part that is not diskless."""
        return self.state in _TWO_PARTS


def topic_kinds(cluster: Cluster, topics: Collection[str]) -> dict[str, TopicKind]:
    """The kind of each topic that can be described. All of them are asked for in one request."""
    resources = [
        DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=[*_KINDS, _STATE])
        for name in topics
    ]
    if not resources:
        return {}
    answer = cluster.any().request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    return {
        result.resource_name: _kind({row.name: row.value for row in result.configs})
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }


def _kind(settings: Mapping[str, str | None]) -> TopicKind:
    kind = next((kind for setting, kind in _KINDS.items() if settings.get(setting) == "true"), "classic")
    return TopicKind(kind, settings.get(_STATE) or None if kind == "diskless" else None)
