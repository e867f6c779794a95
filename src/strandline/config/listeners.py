"""Addresses that the broker listens on, and addresses that it advertises to clients."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from strandline.errors import InvalidConfig

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
AVAILABLE_PROTOCOLS: Final = ("PLAINTEXT",)
EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})
_LISTENER: Final = re.compile(r"([A-Za-z0-9_.-]+)://(\[[0-9A-Fa-f:.%]+\]|[^:/\[\]\s]*):([0-9]+)")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:/\[\]\s]*):([0-9]+)")


def machine_name() -> str:
    """The name of this machine if it can be resolved, else localhost. Advertised where no host is set."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


class Endpoint(NamedTuple):
    """One listener: its name, its address, and the security protocol spoken on it."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def is_everywhere(self) -> bool:
        """True if the address stands for all interfaces of the machine."""
        return self.host in EVERYWHERE

    def __str__(self) -> str:
        return f"{self.name}://{join_address(self.host, self.port)}"


def join_address(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str, *, name: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[v6]:port`. Raises InvalidConfig in the name of setting `name`."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match[2]) > 65535:
        raise InvalidConfig(f"{name} must be host:port with a port from 0 to 65535, but is {text!r}.")
    return match[1].strip("[]"), int(match[2])


def parse_listeners(entries: Sequence[str], protocols: Mapping[str, str], *, name: str) -> tuple[Endpoint, ...]:
    """The endpoints of `NAME://host:port` entries. Raises InvalidConfig in the name of setting `name`."""
    endpoints = tuple(_parse_listener(entry, protocols, name) for entry in entries)
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) != len(names):
        raise InvalidConfig(f"{name} must not use a listener name twice: {', '.join(names)}.")
    return endpoints


def check_distinct_ports(endpoints: Sequence[Endpoint]) -> None:
    """Raise InvalidConfig if two endpoints claim one port; port 0 (any free port) may repeat."""
    seen: dict[int, Endpoint] = {}
    for endpoint in endpoints:
        other = seen.setdefault(endpoint.port, endpoint)
        overlap = other.host == endpoint.host or other.is_everywhere or endpoint.is_everywhere
        if other is not endpoint and endpoint.port != 0 and overlap:
            raise InvalidConfig(f"listeners must not use a port twice: {other} and {endpoint}.")


def parse_protocol_map(entries: Sequence[str]) -> Mapping[str, str]:
    """Listener names and their security protocols, out of `NAME:PROTOCOL` entries. Raises InvalidConfig."""
    protocols: dict[str, str] = {}
    for entry in entries:
        listener, colon, protocol = entry.partition(":")
        if not colon or not listener or protocol.upper() not in SECURITY_PROTOCOLS:
            raise InvalidConfig(
                f"listener.security.protocol.map must be NAME:PROTOCOL pairs with a protocol out of "
                f"{', '.join(SECURITY_PROTOCOLS)}, but has {entry!r}."
            )
        protocols[listener.upper()] = protocol.upper()
    return protocols


def _parse_listener(entry: str, protocols: Mapping[str, str], name: str) -> Endpoint:
    match = _LISTENER.fullmatch(entry)
    if match is None or int(match[3]) > 65535:
        raise InvalidConfig(
            f"{name} must be a list of NAME://host:port with ports from 0 to 65535, separated by commas, "
            f"but has {entry!r}."
        )
    listener = match[1].upper()
    protocol = protocols.get(listener)
    if protocol is None:
        raise InvalidConfig(
            f"{name} has a listener {listener} without a protocol; add {listener}:PLAINTEXT to "
            f"listener.security.protocol.map."
        )
    if protocol not in AVAILABLE_PROTOCOLS:
        raise InvalidConfig(
            f"{name} asks for {protocol} on listener {listener}; only {', '.join(AVAILABLE_PROTOCOLS)} is available "
            f"in this version."
        )
    return Endpoint(listener, match[2].strip("[]"), int(match[3]), protocol)
