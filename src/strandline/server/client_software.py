"""Which software a connection belongs to: clients say it once, in their ApiVersions request."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

MOST_CONNECTIONS: Final = 16_384


class Software(NamedTuple):
    """The name and the version of a client library, as it calls itself. None: it did not say."""

    name: str | None = None
    version: str | None = None


_UNKNOWN: Final = Software()


class ClientSoftware:
    """What the connections of a broker said last. Only of so many: those that spoke first are forgotten first."""

    def __init__(self) -> None:
        self._by_connection: OrderedDict[int, Software] = OrderedDict()

    def note(self, connection_id: int, name: str, version: str) -> None:
        """A connection has said what it is."""
        self._by_connection[connection_id] = Software(name, version)
        self._by_connection.move_to_end(connection_id)
        if len(self._by_connection) > MOST_CONNECTIONS:
            self._by_connection.popitem(last=False)

    def of(self, connection_id: int) -> Software:
        """What the connection has said."""
        return self._by_connection.get(connection_id, _UNKNOWN)
