"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import alter_configs as full
from strandline.wire.messages import incremental_alter_configs as incremental
from strandline.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from strandline.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.server.handlers.conftest import create_topic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT, LOGGER = range(1, 7)
DYNAMIC_GROUP = 8


def describe(client: Client, kind: int, name: str, keys: list[str] | None = None, **how: Any) -> DescribeConfigsResult:
    version = how.pop("version", 4)
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], **how)
    (result,) = client.request(ApiKey.DESCRIBE_CONFIGS, request, version=version).results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def entry(client: Client, kind: int, name: str, key: str, **how: Any) -> DescribeConfigsResourceResult:
    result = describe(client, kind, name, [key], **how)
    assert result.error_code == ErrorCode.NONE, result.error_message
    (found,) = result.configs
    assert found.name == key
    return found


def change(client: Client, kind: int, name: str, *changes: tuple[str, int, str | None], **how: Any) -> ErrorCode:
    version = how.pop("version", 1)
    configs = [incremental.AlterableConfig(name=k, config_operation=operation, value=v) for k, operation, v in changes]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], **how)
    (result,) = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version=version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert (result.error_message is None) == (result.error_code == 0)
    return ErrorCode(result.error_code)


def replace(client: Client, name: str, version: int = 2, **values: str) -> ErrorCode:
    configs = [full.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()]
    resource = full.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
    request = full.AlterConfigsRequest(resources=[resource])
    (result,) = client.request(ApiKey.ALTER_CONFIGS, request, version=version).responses
    return ErrorCode(result.error_code)


@pytest.mark.parametrize("version", range(API_VERSIONS[ApiKey.DESCRIBE_CONFIGS].min, 5))
def test_a_topic_in_every_version(client: Client, topic: str, version: int) -> None:
    result = describe(client, TOPIC, topic, version=version, include_synonyms=True)
    found = {config.name: config for config in result.configs}
    assert found["cleanup.policy"].value == "delete"
    assert found["cleanup.policy"].config_source == DEFAULT
    assert not found["cleanup.policy"].read_only
    assert [(s.name, s.value, s.source) for s in found["segment.bytes"].synonyms] == [
        ("log.segment.bytes", "1073741824", DEFAULT)
    ]
    assert found["segment.bytes"].config_type == (3 if version >= 3 else 0)


def test_the_state_of_a_switch_is_shown_by_its_name_and_with_all_settings(client: Client, topic: str) -> None:
    is_diskless = entry(client, TOPIC, topic, "diskless.enable").value == "true"
    found = entry(client, TOPIC, topic, "diskless.migration.state", include_synonyms=True, include_documentation=True)
    assert (found.value, found.read_only, found.config_source) == (
        "DISKLESS_ONLY" if is_diskless else "N/A",
        True,
        DEFAULT,
    )
    assert found.documentation
    names = [config.name for config in describe(client, TOPIC, topic).configs]
    assert names == sorted(names)
    assert "diskless.migration.state" in names
    assert "diskless.migration.state" not in [
        one.name for one in describe(client, TOPIC, topic, ["retention.ms"]).configs
    ]


@pytest.mark.parametrize("operation", [SET, DELETE, APPEND, SUBTRACT])
def test_the_state_of_a_switch_cannot_be_changed(client: Client, topic: str, operation: int) -> None:
    value = None if operation == DELETE else "N/A"
    refused = change(client, TOPIC, topic, ("diskless.migration.state", operation, value))
    assert refused is ErrorCode.INVALID_CONFIG


def test_documentation_and_synonyms_come_when_asked_for(client: Client, topic: str) -> None:
    plain = entry(client, TOPIC, topic, "retention.ms")
    assert (plain.documentation, plain.synonyms) == (None, [])
    assert entry(client, TOPIC, topic, "retention.ms", include_documentation=True).documentation


def test_an_override_of_a_topic(client: Client, new_name: Callable[[], str]) -> None:
    topic = create_topic(client, new_name(), configs={"retention.bytes": "12345"})
    found = entry(client, TOPIC, topic, "retention.bytes", include_synonyms=True)
    assert (found.value, found.config_source) == ("12345", DYNAMIC_TOPIC)
    assert [(synonym.name, synonym.source) for synonym in found.synonyms] == [
        ("retention.bytes", DYNAMIC_TOPIC),
        ("log.retention.bytes", DEFAULT),
    ]


def test_this_broker(client: Client) -> None:
    found = entry(client, BROKER, "1", "offsets.topic.num.partitions")
    assert (found.value, found.config_source, found.read_only) == ("4", STATIC, True)
    assert len(describe(client, BROKER, "1").configs) > 100


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "not a name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER, "--1", ErrorCode.INVALID_REQUEST),
        (BROKER, " 1", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "--1", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_described(client: Client, kind: int, name: str, expected: ErrorCode) -> None:
    result = describe(client, kind, name)
    assert (ErrorCode(result.error_code), result.configs) == (expected, [])
    assert result.error_message


@pytest.mark.parametrize("version", [0, 1])
def test_setting_and_deleting(client: Client, topic: str, version: int) -> None:
    assert change(client, TOPIC, topic, ("retention.ms", SET, "5000"), version=version) is ErrorCode.NONE
    found = entry(client, TOPIC, topic, "retention.ms")
    assert (found.value, found.config_source) == ("5000", DYNAMIC_TOPIC)
    assert change(client, TOPIC, topic, ("retention.ms", DELETE, None), version=version) is ErrorCode.NONE
    assert entry(client, TOPIC, topic, "retention.ms").config_source == DEFAULT


def test_appending_and_subtracting(client: Client, topic: str) -> None:
    throttled = "leader.replication.throttled.replicas"
    assert change(client, TOPIC, topic, (throttled, APPEND, "0:1")) is ErrorCode.NONE
    assert change(client, TOPIC, topic, (throttled, APPEND, "1:1")) is ErrorCode.NONE
    assert entry(client, TOPIC, topic, throttled).value == "0:1,1:1"
    assert change(client, TOPIC, topic, (throttled, SUBTRACT, "0:1")) is ErrorCode.NONE
    assert entry(client, TOPIC, topic, throttled).value == "1:1"


def test_validating_only_changes_nothing(client: Client, topic: str) -> None:
    assert change(client, TOPIC, topic, ("retention.ms", SET, "5000"), validate_only=True) is ErrorCode.NONE
    assert entry(client, TOPIC, topic, "retention.ms").config_source == DEFAULT


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("no.such.setting", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        ([("retention.bytes", SET, "1"), ("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_changes_that_cannot_be_made(
    client: Client, topic: str, changes: list[tuple[str, int, str | None]], expected: ErrorCode
) -> None:
    before = describe(client, TOPIC, topic).configs
    assert change(client, TOPIC, topic, *changes) is expected
    assert describe(client, TOPIC, topic).configs == before


def test_one_bad_request_does_not_spoil_the_next(client: Client, topic: str) -> None:
    """In another broker, one config request that failed kept later ones from working."""
    assert change(client, TOPIC, topic, ("retention.ms", SET, "soon")) is ErrorCode.INVALID_CONFIG
    assert change(client, TOPIC, topic, ("retention.ms", SET, "5000")) is ErrorCode.NONE


def test_a_resource_named_twice(client: Client, topic: str) -> None:
    resource = incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=topic)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource, resource])
    answers = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("kind", [CLIENT_METRICS, 77])
def test_resources_that_have_no_settings(client: Client, kind: int) -> None:
    assert change(client, kind, "x", ("y", SET, "1")) is ErrorCode.INVALID_REQUEST
    assert change(client, TOPIC, "absent", ("retention.ms", SET, "1")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_settings_of_a_group(client: Client, new_name: Callable[[], str]) -> None:
    group = new_name()
    before = entry(client, GROUP, group, "consumer.session.timeout.ms", include_synonyms=True)
    assert (before.value, before.config_source) == ("45000", DEFAULT)
    assert [synonym.name for synonym in before.synonyms] == ["group.consumer.session.timeout.ms"]
    assert change(client, GROUP, group, ("consumer.session.timeout.ms", SET, "50000")) is ErrorCode.NONE
    after = entry(client, GROUP, group, "consumer.session.timeout.ms", include_synonyms=True)
    assert (after.value, after.config_source, after.read_only) == ("50000", DYNAMIC_GROUP, False)
    assert [(synonym.name, synonym.value) for synonym in after.synonyms] == [
        ("consumer.session.timeout.ms", "50000"),
        ("group.consumer.session.timeout.ms", "45000"),
    ]
    listed = client.request(ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(resource_types=[GROUP]), version=1)
    assert (GROUP, group) in [(one.resource_type, one.resource_name) for one in listed.config_resources]
    assert change(client, GROUP, group, ("consumer.session.timeout.ms", DELETE, None)) is ErrorCode.NONE
    assert entry(client, GROUP, group, "consumer.session.timeout.ms").value == "45000"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumer.session.timeout.ms", "44999"),
        ("consumer.session.timeout.ms", "60001"),
        ("consumer.session.timeout.ms", "soon"),
        ("consumer.heartbeat.interval.ms", "15001"),
        ("consumer.assignment.interval.ms", "-1"),
        ("group.consumer.session.timeout.ms", "50000"),
    ],
)
def test_settings_that_a_group_may_not_have(client: Client, new_name: Callable[[], str], name: str, value: str) -> None:
    group = new_name()
    assert change(client, GROUP, group, (name, SET, value)) is ErrorCode.INVALID_CONFIG
    assert entry(client, GROUP, group, "consumer.session.timeout.ms").value == "45000"


def test_settings_of_a_share_group(client: Client, new_name: Callable[[], str]) -> None:
    group = new_name()
    assert entry(client, GROUP, group, "share.auto.offset.reset").value == "latest"
    changes = (("share.auto.offset.reset", SET, "by_duration:PT1H"), ("share.record.lock.duration.ms", SET, "20000"))
    assert change(client, GROUP, group, *changes) is ErrorCode.NONE
    assert entry(client, GROUP, group, "share.auto.offset.reset").value == "by_duration:PT1H"
    found = entry(client, GROUP, group, "share.record.lock.duration.ms", include_synonyms=True)
    assert [(one.name, one.value) for one in found.synonyms] == [
        ("share.record.lock.duration.ms", "20000"),
        ("group.share.record.lock.duration.ms", "30000"),
    ]
    assert change(client, GROUP, group, ("share.auto.offset.reset", SET, "whenever")) is ErrorCode.INVALID_CONFIG


def test_a_setting_that_only_groups_have_falls_back_to_its_default(client: Client, new_name: Callable[[], str]) -> None:
    group, name = new_name(), "share.isolation.level"
    found = entry(client, GROUP, group, name, include_synonyms=True)
    default = (name, "read_uncommitted", DEFAULT)
    assert [(one.name, one.value, one.source) for one in found.synonyms] == [default]
    assert change(client, GROUP, group, (name, SET, "read_committed")) is ErrorCode.NONE
    found = entry(client, GROUP, group, name, include_synonyms=True)
    own = (name, "read_committed", DYNAMIC_GROUP)
    assert [(one.name, one.value, one.source) for one in found.synonyms] == [own, default]


def test_all_groups_have_no_settings_of_their_own(client: Client) -> None:
    refused = change(client, GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    assert refused is ErrorCode.INVALID_REQUEST
    assert describe(client, GROUP, "").error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1, 2])
def test_replacing_all_settings(client: Client, topic: str, version: int) -> None:
    assert replace(client, topic, version, retention_ms="5000", retention_bytes="7") is ErrorCode.NONE
    assert replace(client, topic, version, retention_ms="6000") is ErrorCode.NONE
    assert entry(client, TOPIC, topic, "retention.ms").value == "6000"
    assert entry(client, TOPIC, topic, "retention.bytes").config_source == DEFAULT
    assert replace(client, topic, version, retention_ms="soon") is ErrorCode.INVALID_CONFIG
    assert entry(client, TOPIC, topic, "retention.ms").value == "6000"


def test_dynamic_settings_of_brokers(client: Client, topic: str) -> None:
    assert change(client, BROKER, "", ("log.retention.bytes", SET, "111")) is ErrorCode.NONE
    assert [c.name for c in describe(client, BROKER, "").configs] == ["log.retention.bytes"]
    assert change(client, BROKER, "1", ("log.retention.bytes", SET, "222")) is ErrorCode.NONE
    found = entry(client, BROKER, "1", "log.retention.bytes", include_synonyms=True)
    assert (found.value, found.config_source) == ("222", DYNAMIC_BROKER)
    assert [synonym.source for synonym in found.synonyms] == [DYNAMIC_BROKER, DYNAMIC_DEFAULT, DEFAULT]
    assert entry(client, TOPIC, topic, "retention.bytes").value == "222"
    for name in ("", "1"):
        assert change(client, BROKER, name, ("log.retention.bytes", DELETE, None)) is ErrorCode.NONE
    assert entry(client, BROKER, "1", "log.retention.bytes").config_source == DEFAULT


def test_throttles_of_a_reassignment_are_shown_while_they_are_set(client: Client) -> None:
    """Kafka's tool sets them before it sends a reassignment, also one that changes nothing."""
    rates = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"]
    assert change(client, BROKER, "1", *((name, SET, "1000") for name in rates)) is ErrorCode.NONE
    assert [entry(client, BROKER, "1", name).value for name in rates] == ["1000", "1000"]
    assert change(client, BROKER, "1", *((name, DELETE, None) for name in rates)) is ErrorCode.NONE
    assert not {one.name for one in describe(client, BROKER, "1").configs} & set(rates)


def test_broker_settings_that_are_fixed(client: Client) -> None:
    assert change(client, BROKER, "1", ("node.id", SET, "7")) is ErrorCode.INVALID_REQUEST


def test_levels_of_loggers(client: Client) -> None:
    name = "strandline.server.network"
    assert entry(client, BROKER_LOGGER, "1", "root").config_source == LOGGER
    assert change(client, BROKER_LOGGER, "1", (name, SET, "DEBUG"), validate_only=True) is ErrorCode.NONE
    before = entry(client, BROKER_LOGGER, "1", name).value
    assert before != "DEBUG"
    assert change(client, BROKER_LOGGER, "1", (name, SET, "DEBUG")) is ErrorCode.NONE
    assert entry(client, BROKER_LOGGER, "1", name).value == "DEBUG"
    assert change(client, BROKER_LOGGER, "1", (name, DELETE, None)) is ErrorCode.NONE
    assert entry(client, BROKER_LOGGER, "1", name).value == before


@pytest.mark.parametrize(
    ("node", "wish", "expected"),
    [
        ("2", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_levels_that_cannot_be_set(
    client: Client, node: str, wish: tuple[str, int, str | None], expected: ErrorCode
) -> None:
    assert change(client, BROKER_LOGGER, node, wish) is expected


def test_listing_what_has_settings(client: Client, topic: str) -> None:
    def listed(*kinds: int, version: int = 1) -> set[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        answer = client.request(ApiKey.LIST_CONFIG_RESOURCES, request, version=version)
        assert answer.error_code == ErrorCode.NONE
        return {(row.resource_type, row.resource_name) for row in answer.config_resources}

    assert {(TOPIC, topic), (BROKER, "1"), (BROKER_LOGGER, "1")} <= listed()
    assert listed(BROKER) == {(BROKER, "1")}
    assert listed(version=0) == set()
    unknown = client.request(ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(resource_types=[77]))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION
