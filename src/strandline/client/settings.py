"""Asks brokers which settings are in force."""

from __future__ import annotations

from typing import Any, Final

from strandline.client.cluster import Cluster, check
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC: Final = 2
BROKER: Final = 4


def described(client: Client, kind: int, name: str) -> list[Any]:
    """The settings of a topic or a broker, as that broker has them. Raises CommandFailed."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=False)
    result = client.request(ApiKey.DESCRIBE_CONFIGS, request).results[0]
    check(result.error_code, result.error_message, "The settings cannot be described")
    return list(result.configs)


def broker_setting(cluster: Cluster, node_id: int, name: str) -> str | None:
    """The value that a broker uses; None if it does not know the setting."""
    rows = described(cluster.broker(node_id), BROKER, str(node_id))
    return next((row.value for row in rows if row.name == name), None)
