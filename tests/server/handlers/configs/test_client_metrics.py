"""Subscriptions to metrics of clients as a config resource."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.metadata import ConfigOperation
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import alter_configs as full
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.list_config_resources import ListConfigResourcesRequest

CLIENT_METRICS = 16
DYNAMIC, DEFAULT = 7, 5
SET, DELETE, APPEND = ConfigOperation.SET, ConfigOperation.DELETE, ConfigOperation.APPEND


def alter(client: Client, name: str, *changes: tuple[str, ConfigOperation, str | None]) -> ErrorCode:
    configs = [AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    return ErrorCode(answer.error_code)


def described(client: Client, name: str) -> dict[str, tuple[str | None, int]]:
    resource = DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=None)
    (answer,) = client.request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])).results
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return {entry.name: (entry.value, entry.config_source) for entry in answer.configs}


def listed(client: Client, version: int | None = None) -> set[str]:
    kinds = [] if version == 0 else [CLIENT_METRICS]
    request = ListConfigResourcesRequest(resource_types=kinds)
    answer = client.request(ApiKey.LIST_CONFIG_RESOURCES, request, version=version)
    return {resource.resource_name for resource in answer.config_resources}


def test_a_subscription_is_made_changed_listed_and_removed(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    assert alter(client, name, ("metrics", SET, "org.apache.kafka.producer."), ("interval.ms", SET, "5000")) == 0
    assert alter(client, name, ("metrics", APPEND, "org.apache.kafka.consumer.")) is ErrorCode.NONE
    assert described(client, name) == {
        "interval.ms": ("5000", DYNAMIC),
        "match": ("", DEFAULT),
        "metrics": ("org.apache.kafka.producer.,org.apache.kafka.consumer.", DYNAMIC),
    }
    assert name in listed(client)
    assert name in listed(client, version=0)
    assert alter(client, name, ("metrics", DELETE, None), ("interval.ms", DELETE, None)) is ErrorCode.NONE
    assert name not in listed(client)
    assert described(client, name)["interval.ms"] == ("300000", DEFAULT)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "3600001", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "often", ErrorCode.INVALID_CONFIG),
        ("match", "client_id", ErrorCode.INVALID_CONFIG),
        ("match", "shoe_size=42", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=(", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=a=b", ErrorCode.INVALID_CONFIG),
        ("push", "now", ErrorCode.INVALID_REQUEST),
    ],
)
def test_illegal_subscriptions(
    client: Client, new_name: Callable[[], str], key: str, value: str, code: ErrorCode
) -> None:
    name = new_name()
    assert alter(client, name, (key, SET, value)) is code
    assert name not in listed(client)


def test_only_what_is_set_has_a_synonym_and_lists_are_shown_without_spaces(
    client: Client, new_name: Callable[[], str]
) -> None:
    name = new_name()
    alter(client, name, ("match", SET, "client_id=a.*, client_source_port=9.*"))
    resource = DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (answer,) = client.request(ApiKey.DESCRIBE_CONFIGS, request).results
    shown = {entry.name: [(one.value, one.source) for one in entry.synonyms] for entry in answer.configs}
    assert shown == {"interval.ms": [], "match": [("client_id=a.*,client_source_port=9.*", DYNAMIC)], "metrics": []}


def test_a_subscription_can_be_replaced_as_a_whole(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    alter(client, name, ("interval.ms", SET, "5000"), ("metrics", SET, "a"))
    resource = full.AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=name, configs=[full.AlterableConfig(name="metrics", value="b")]
    )
    (answer,) = client.request(ApiKey.ALTER_CONFIGS, full.AlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == ErrorCode.NONE
    assert described(client, name)["metrics"] == ("b", DYNAMIC)
    assert described(client, name)["interval.ms"] == ("300000", DEFAULT)


def test_a_subscription_needs_a_name(client: Client) -> None:
    assert alter(client, "", ("metrics", SET, "*")) is ErrorCode.INVALID_REQUEST
    resource = DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name="", configuration_keys=None)
    (answer,) = client.request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])).results
    assert answer.error_code == ErrorCode.INVALID_REQUEST
