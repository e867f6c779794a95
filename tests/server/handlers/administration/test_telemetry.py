"""GetTelemetrySubscriptions and PushTelemetry over the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.push_telemetry import PushTelemetryRequest
from tests.broker import Broker
from tests.server.telemetry.payloads import metric, metrics_data, point
from tests.waiting import wait_until
from tests.wirelevel.raw import connected

PAYLOAD = metrics_data([metric("m", point(1.0))])
ZSTD, LZ4, GZIP, SNAPPY = 4, 3, 1, 2
_CLIENT_METRICS, _SET, _DELETE = 16, 0, 1


def push(client: Client, instance_id: UUID, subscription_id: int, *, terminating: bool = False) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=instance_id, subscription_id=subscription_id, terminating=terminating, metrics=PAYLOAD
    )
    return ErrorCode(client.request(ApiKey.PUSH_TELEMETRY, request, version=0).error_code)


def test_a_client_asks_and_pushes(client: Client) -> None:
    answer = client.request(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, GetTelemetrySubscriptionsRequest(), version=0)
    assert answer.error_code == ErrorCode.NONE
    assert answer.accepted_compression_types == [ZSTD, LZ4, GZIP, SNAPPY]
    assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (300_000, 1_048_576)
    assert (answer.delta_temporality, answer.requested_metrics) == (False, [])
    mine, subscription = answer.client_instance_id, answer.subscription_id
    again = client.request(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, GetTelemetrySubscriptionsRequest(client_instance_id=mine), version=0
    )
    assert (again.error_code, again.client_instance_id) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, mine)
    assert push(client, mine, subscription + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert push(client, mine, subscription) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(client, mine, subscription, terminating=True) is ErrorCode.NONE
    assert push(client, mine, subscription) is ErrorCode.INVALID_REQUEST
    assert push(client, UUID(int=0), subscription) is ErrorCode.INVALID_REQUEST


def offered(client: Client) -> set[int]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return {one.api_key for one in client.request(ApiKey.API_VERSIONS, request).api_keys}


def test_clients_are_not_asked_for_metrics_that_nobody_wants(client: Client) -> None:
    telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert not telemetry & offered(client)
    with subscribed(client, {"interval.ms": "1000"}):
        wait_until(lambda: telemetry <= offered(client), what="telemetry to be offered")
    wait_until(lambda: not telemetry & offered(client), what="telemetry not to be offered any more")


def test_a_subscription_finds_clients_by_their_address_and_port(broker: Broker) -> None:
    host, port = broker.bootstrap.rsplit(":", 1)
    with connected(broker.bootstrap) as raw, Client.connect(host, int(port)) as other:
        local = raw.socket.getsockname()
        match = f"client_source_address=127[.]0[.]0[.]1,client_source_port={local[1]}"
        with subscribed(other, {"metrics": "org.", "match": match}):
            request = GetTelemetrySubscriptionsRequest()
            found = raw.call(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request)
            assert found.requested_metrics == ["org."]
            not_found = other.request(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, request, version=0)
            assert not_found.requested_metrics == []


@contextmanager
def subscribed(client: Client, settings: Mapping[str, str]) -> Iterator[None]:
    """While there is a subscription with these settings."""

    def alter(operation: int) -> None:
        configs = [
            AlterableConfig(name=name, config_operation=operation, value=value) for name, value in settings.items()
        ]
        resource = AlterConfigsResource(resource_type=_CLIENT_METRICS, resource_name="curious", configs=configs)
        answer = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]))
        assert [one.error_code for one in answer.responses] == [ErrorCode.NONE]

    alter(_SET)
    try:
        yield
    finally:
        alter(_DELETE)
