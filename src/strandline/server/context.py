"""What a handler knows about the request it serves."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

ANONYMOUS = "User:ANONYMOUS"


@dataclass(slots=True)
class RequestContext:
    """The client, its listener, and the API and version of the request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    listener: str
    principal: str
    connection_id: int
    client_port: int | None = None
    """None if the request was forwarded by another broker, or made by this one."""


# Requests and responses are the generated classes of `wire.messages`; a table of handlers holds many of them.
Handler: TypeAlias = Callable[[Any, RequestContext], Coroutine[Any, Any, Any]]
