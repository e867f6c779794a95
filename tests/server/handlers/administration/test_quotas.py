"""DescribeClientQuotas and AlterClientQuotas over the wire."""

from __future__ import annotations

import pytest

from strandline.server.handlers.administration.quotas import ClientQuotasHandler
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from strandline.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.metadata.cluster import open_cluster
from tests.server.handlers.test_several_brokers import context

EXACT, DEFAULT, ANY = 0, 1, 2


def alter(client: Client, entity: dict[str, str | None], key: str, value: float | None) -> ErrorCode:
    entry = RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    (answer,) = client.request(ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(entries=[entry])).entries
    assert {part.entity_type: part.entity_name for part in answer.entity} == entity
    return ErrorCode(answer.error_code)


def described(client: Client, kind: str, match: int, name: str | None = None) -> list[tuple[object, object]]:
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=match, match=name)], strict=True
    )
    answer = client.request(ApiKey.DESCRIBE_CLIENT_QUOTAS, request)
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return [
        ([part.entity_name for part in entry.entity], {value.key: value.value for value in entry.values})
        for entry in answer.entries
    ]


def test_quotas_are_stored_described_and_removed(client: Client) -> None:
    assert alter(client, {"user": "wire"}, "producer_byte_rate", 1e6) is ErrorCode.NONE
    assert alter(client, {"user": None}, "request_percentage", 33.5) is ErrorCode.NONE
    assert described(client, "user", EXACT, "wire") == [(["wire"], {"producer_byte_rate": 1e6})]
    assert described(client, "user", DEFAULT) == [([None], {"request_percentage": 33.5})]
    assert len(described(client, "user", ANY)) == 2
    assert alter(client, {"user": "wire"}, "producer_byte_rate", None) is ErrorCode.NONE
    assert described(client, "user", EXACT, "wire") == []


def test_an_entity_that_is_named_twice_has_one_answer(client: Client) -> None:
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=name)],
            ops=[OpData(key="producer_byte_rate", value=rate)],
        )
        for name, rate in (("once", 1.0), ("twice", 2.0), ("twice", 3.0))
    ]
    answer = client.request(ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(entries=entries))
    assert [(entry.entity[0].entity_name, entry.error_code) for entry in answer.entries] == [
        ("once", ErrorCode.NONE),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    assert described(client, "user", EXACT, "twice") == []
    assert alter(client, {"user": "once"}, "producer_byte_rate", None) is ErrorCode.NONE


def test_the_address_of_an_ip_entity_has_to_make_sense(client: Client) -> None:
    key = "connection_creation_rate"
    assert alter(client, {"ip": "::1"}, key, 5.0) is ErrorCode.NONE
    assert alter(client, {"ip": "localhost"}, key, 5.0) is ErrorCode.NONE
    assert alter(client, {"ip": None}, key, 5.0) is ErrorCode.NONE
    assert alter(client, {"ip": "no host \0"}, key, 5.0) is ErrorCode.INVALID_REQUEST
    assert alter(client, {"ip": "::1"}, "producer_byte_rate", 5.0) is ErrorCode.INVALID_REQUEST


def test_a_filter_by_an_unknown_type_is_refused_as_a_whole(client: Client) -> None:
    request = DescribeClientQuotasRequest(components=[ComponentData(entity_type="group", match_type=ANY, match=None)])
    answer = client.request(ApiKey.DESCRIBE_CLIENT_QUOTAS, request)
    assert (answer.error_code, answer.entries) == (ErrorCode.UNSUPPORTED_VERSION, None)


async def test_the_log_says_that_nothing_enforces_them(caplog: pytest.LogCaptureFixture) -> None:
    def entry(value: float | None) -> RequestEntryData:
        return RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name="greedy")],
            ops=[OpData(key="producer_byte_rate", value=value or 0.0, remove=value is None)],
        )

    async with open_cluster() as cluster:
        handler = ClientQuotasHandler(cluster.controller, cluster.loader)
        tried = AlterClientQuotasRequest(entries=[entry(1.0)], validate_only=True)
        await handler.alter_client_quotas(tried, context(1))
        assert not caplog.records
        await handler.alter_client_quotas(AlterClientQuotasRequest(entries=[entry(1.0)]), context(1))
        assert "nothing enforces quotas" in caplog.text
        caplog.clear()
        ClientQuotasHandler(cluster.controller, cluster.loader)
        assert "nothing enforces quotas" in caplog.text
        caplog.clear()
        await handler.alter_client_quotas(AlterClientQuotasRequest(entries=[entry(None)]), context(1))
        ClientQuotasHandler(cluster.controller, cluster.loader)
        assert not caplog.records
