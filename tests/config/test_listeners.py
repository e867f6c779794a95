"""Listeners: which are opened, and which are advertised to clients."""

from __future__ import annotations

import socket

import pytest

from strandline.config import Settings
from strandline.config.listeners import Endpoint, join_address, machine_name, parse_address
from strandline.errors import InvalidConfig


def _network(**properties: str) -> Settings:
    return Settings.from_properties({name.replace("_", "."): value for name, value in properties.items()})


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("PLAINTEXT://:9092", Endpoint("PLAINTEXT", "", 9092)),
        ("PLAINTEXT://0.0.0.0:9092", Endpoint("PLAINTEXT", "0.0.0.0", 9092)),
        ("plaintext://my-host.example:0", Endpoint("PLAINTEXT", "my-host.example", 0)),
        ("PLAINTEXT://[::1]:9092", Endpoint("PLAINTEXT", "::1", 9092)),
    ],
)
def test_a_listener_is_parsed(text: str, endpoint: Endpoint) -> None:
    assert _network(listeners=text).network.endpoints == (endpoint,)


@pytest.mark.parametrize(
    ("listeners", "sentence"),
    [
        ("9092", "NAME://host:port"),
        ("PLAINTEXT://host", "NAME://host:port"),
        ("PLAINTEXT://host:99999", "ports from 0 to 65535"),
        ("PLAINTEXT://a:1,PLAINTEXT://b:2", "must not use a listener name twice"),
        ("PLAINTEXT://:1,SSL://:2", "only PLAINTEXT is available"),
        ("INSIDE://:1", "add INSIDE:PLAINTEXT to listener.security.protocol.map"),
        ("", "listeners must be a list of one or more"),
    ],
)
def test_a_bad_listener_is_refused(listeners: str, sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        _network(listeners=listeners)


def test_several_listeners_with_names_of_their_own() -> None:
    settings = _network(
        listeners="INSIDE://10.0.0.1:9092,OUTSIDE://:9093",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        advertised_listeners="OUTSIDE://broker.example:19093,INSIDE://10.0.0.1:9092",
        inter_broker_listener_name="INSIDE",
    ).network
    assert [endpoint.name for endpoint in settings.endpoints] == ["INSIDE", "OUTSIDE"]
    assert settings.advertised_endpoints("unused")[0] == Endpoint("OUTSIDE", "broker.example", 19093)
    assert settings.inter_broker_listener == "INSIDE"


@pytest.mark.parametrize("listeners", ["A://:1,B://:1", "A://:1,B://10.0.0.1:1", "A://h:1,B://h:1"])
def test_one_port_for_two_listeners_is_refused(listeners: str) -> None:
    with pytest.raises(InvalidConfig, match="must not use a port twice"):
        _network(listeners=listeners, listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT")


def test_one_port_on_two_addresses_and_free_ports_are_fine() -> None:
    protocols = "A:PLAINTEXT,B:PLAINTEXT"
    _network(listeners="A://10.0.0.1:1,B://10.0.0.2:1", listener_security_protocol_map=protocols)
    _network(listeners="A://:0,B://:0", listener_security_protocol_map=protocols)


def test_a_listener_without_a_host_is_advertised_under_the_name_of_the_machine() -> None:
    for listeners in ("PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://[::]:9092"):
        advertised = _network(listeners=listeners).network.advertised_endpoints("machine")
        assert advertised == (Endpoint("PLAINTEXT", "machine", 9092),)
    named = _network(listeners="PLAINTEXT://10.1.1.1:9092").network
    assert named.advertised_endpoints("machine")[0].host == "10.1.1.1"


@pytest.mark.parametrize(
    ("advertised", "sentence"),
    [
        ("PLAINTEXT://0.0.0.0:9092", "must name hosts that clients can reach"),
        ("SASL_SSL://x:1", "only PLAINTEXT is available"),
        ("nothing", "NAME://host:port"),
    ],
)
def test_a_bad_advertised_listener_is_refused(advertised: str, sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        _network(advertised_listeners=advertised)


def test_an_advertised_listener_has_to_be_opened() -> None:
    with pytest.raises(InvalidConfig, match="names OTHER, which listeners does not have: PLAINTEXT"):
        _network(
            advertised_listeners="OTHER://x:1", listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
        )
    with pytest.raises(InvalidConfig, match=r"inter\.broker\.listener\.name must be one of PLAINTEXT"):
        _network(inter_broker_listener_name="OTHER")


def test_controller_listeners_are_not_opened_but_one_for_clients_is_needed() -> None:
    with pytest.raises(InvalidConfig, match="a listener for clients"):
        _network(listeners="CONTROLLER://:9093", controller_listener_names="CONTROLLER")


def test_exceptions_for_single_addresses() -> None:
    network = _network(max_connections_per_ip_overrides="10.0.0.1:5,[::1]:7").network
    assert network.connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 7}


@pytest.mark.parametrize("text", ["localhost:9092", ":9092", "[::1]:9092"])
def test_an_address_survives_its_text_form(text: str) -> None:
    assert join_address(*parse_address(text, name="x")) == text


@pytest.mark.parametrize("text", ["localhost", "::1:9092", "host:65536", "host:-1", "a b:1"])
def test_a_bad_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="x must be host:port"):
        parse_address(text, name="x")


def test_the_machine_has_a_name_that_can_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert socket.getaddrinfo(machine_name(), None)
    monkeypatch.setattr(socket, "gethostname", lambda: "no such host")
    assert machine_name() == "localhost"
