"""Which kind of topic a topic is, by the settings that are in force for it: classic, tiered or diskless."""

from __future__ import annotations

from collections.abc import Collection

from strandline.admin.commands.client import Cluster
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

# By the setting that makes a topic one. The first that is true decides.
_KINDS = {"diskless.enable": "diskless", "remote.storage.enable": "tiered"}
_TOPIC = 2


def topic_kinds(cluster: Cluster, topics: Collection[str]) -> dict[str, str]:
    """The kind of each topic that can be described. All of them are asked for in one request."""
    resources = [
        DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=list(_KINDS))
        for name in topics
    ]
    if not resources:
        return {}
    answer = cluster.any().request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    return {
        result.resource_name: _kind({row.name for row in result.configs if row.value == "true"})
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }


def _kind(switched_on: Collection[str]) -> str:
    return next((kind for setting, kind in _KINDS.items() if setting in switched_on), "classic")
