"""Names as long as a string of the protocol can be, in every request: each is answered, whatever the answer says.

Answers name what they refuse, and have to fit into a string themselves.
"""

from __future__ import annotations

import dataclasses
import importlib
import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.primitives import MAX_STRING_LENGTH
from tests.broker import Broker, broker_for_clients
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of
from tests.wirelevel.raw import API_VERSIONS_VERSION, PRODUCE_VERSION, Closed, api_versions_request, connected
from tests.wirelevel.transactional import GROUP_COORDINATOR, wait_for_coordinator

NAMES = {"ascii": "x" * MAX_STRING_LENGTH, "two-bytes": "é" * (MAX_STRING_LENGTH // 2)}
# Brokers send these to each other: they stop the broker, register another one, or are refused before they are read.
BETWEEN_BROKERS = {
    ApiKey.ENVELOPE,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_for_clients(tmp_path_factory.mktemp("broker") / "data", TRANSACTION_SETTINGS) as running:
        with client_of(running.bootstrap) as client:  # or else they say nothing but that there is none
            wait_for_coordinator(client, "g", kind=GROUP_COORDINATOR)
            wait_for_coordinator(client, "t")
        yield running


def request_type(key: ApiKey) -> Any:
    module = importlib.import_module(f"strandline.wire.messages.{key.name.lower()}")
    return getattr(module, "".join(part.capitalize() for part in key.name.split("_")) + "Request")


def filled(kind: Any, name: str) -> Any:
    """A value of a type of the messages, with the name wherever there is a string, and one of each list."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return filled(next(one for one in typing.get_args(kind) if one is not type(None)), name)
    if origin is list:
        return [filled(typing.get_args(kind)[0], name)]
    if kind is str:
        return name
    if dataclasses.is_dataclass(kind):
        made = typing.cast("Any", kind)()
        hints = typing.get_type_hints(kind, vars(importlib.import_module(typing.cast("Any", kind).__module__)))
        for one in dataclasses.fields(kind):
            if _has_strings(hints[one.name]):
                setattr(made, one.name, filled(hints[one.name], name))
        if hasattr(made, "acks"):
            made.acks = -1  # or else there is no answer
        return made
    return kind()


def _has_strings(kind: Any) -> bool:
    """Other fields keep their defaults."""
    arguments = typing.get_args(kind)
    if arguments:
        return any(_has_strings(one) for one in arguments)
    return kind is str or dataclasses.is_dataclass(kind)


@pytest.mark.parametrize("name", NAMES)
def test_every_request_is_answered(broker: Broker, name: str) -> None:
    with connected(broker.bootstrap) as connection:
        offered = connection.call(ApiKey.API_VERSIONS, API_VERSIONS_VERSION, api_versions_request()).api_keys
    unanswered = []
    for api in offered:
        if api.api_key in BETWEEN_BROKERS:
            continue
        key = ApiKey(api.api_key)
        oldest = api.min_version if key is not ApiKey.PRODUCE else PRODUCE_VERSION  # older ones are only announced
        for version in {oldest, api.max_version}:
            request = filled(request_type(key), NAMES[name])
            with connected(broker.bootstrap) as connection:
                try:
                    connection.call(key, version, request)
                except (Closed, TimeoutError) as error:
                    unanswered.append(f"{key.name} {version}: {error!r}")
    assert unanswered == []
