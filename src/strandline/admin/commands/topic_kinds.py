"""Which kind of topic a topic is, by the settings that are in force for it: classic, tiered or diskless.

One that is on its way from classic to diskless is migrating, then hybrid until nothing is left of its older part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from strandline.client import Cluster
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

# By the setting that makes a topic one. The first that is true decides.
_KINDS = {"diskless.enable": "diskless", "remote.storage.enable": "tiered"}
_STATE = "diskless.migration.state"
_ON_THE_WAY = {"MIGRATING": "migrating", "HYBRID": "hybrid"}
ON_THE_WAY = frozenset(_ON_THE_WAY.values())
"""Kinds of topics that have partitions with a classic and a diskless part."""
_TOPIC = 2


def topic_kinds(cluster: Cluster, topics: Collection[str]) -> dict[str, str]:
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


def _kind(settings: Mapping[str, str | None]) -> str:
    kind = next((kind for setting, kind in _KINDS.items() if settings.get(setting) == "true"), "classic")
    return _ON_THE_WAY.get(settings.get(_STATE) or "", kind)
