"""Requests that are well formed and make no sense: each gets an answer, and the connection stays open."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.client import Client
from strandline.wire.registry import codec, decode_response, encode_request
from tests.wire.kio_messages import entities, kio_bytes, schema

# Those that may wait for as long as they ask for, and the one that ends the broker.
NOT_TRIED = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SHARE_FETCH, ApiKey.UNREGISTER_BROKER}
APIS = [key for key in SERVED_APIS if key not in NOT_TRIED]
EXAMPLES = 20


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: key.name)
def test_any_request_is_answered(client: Client, api_key: ApiKey) -> None:
    versions = SERVED_APIS[api_key]
    requests = st.integers(versions.min, versions.max).flatmap(
        lambda version: st.tuples(st.just(version), entities(schema(api_key, version, is_request=True)))
    )

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(requests)
    def check(drawn: tuple[int, Any]) -> None:
        version, entity = drawn
        message, _ = codec(api_key).read_request(memoryview(kio_bytes(entity)), 0, version)
        answer = client.exchange(encode_request(api_key, version, 77, "anybody", message))
        correlation_id, _ = decode_response(api_key, version, memoryview(answer))
        assert correlation_id == 77

    check()
