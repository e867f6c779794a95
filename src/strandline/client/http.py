"""Asks a broker what Kafka's protocol has no request for: over HTTP, at its `strandline.http.listen`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Final

from strandline.client.cluster import Cluster, CommandFailed, Json
from strandline.client.settings import broker_setting
from strandline.config.listeners import join_address, parse_address

_TIMEOUT_S: Final = 30.0
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


# Brokers are near: as connections to the Kafka listener, these go through no proxy that the environment names.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class HttpUnreachable(CommandFailed):
    """The HTTP listener of a broker is off, or does not answer. Another broker may."""


class HttpRefused(CommandFailed):
    """A broker answered with an error."""

    def __init__(self, sentence: str, *, reason: str, status: int, code: str) -> None:
        super().__init__(sentence)
        self.reason = reason
        """What the broker said."""
        self.status = status
        """The HTTP status."""
        self.code = code
        """The name of Kafka's error; empty if the answer had none."""


class BrokerHttp:
    """The HTTP listeners of a cluster's brokers. Where they are is asked once for each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._addresses: dict[int, str] = {}

    def get(self, node_id: int, path: str, *, what: str) -> Json:
        """The JSON at a path. Raises HttpUnreachable, and HttpRefused with the broker's sentence.

        `what` completes "Broker 1 cannot ..." and is a verb with its object.
        """
        return exchange(node_id, self.address(node_id, what=what), path, None, what=what)

    def post(self, node_id: int, path: str, body: Json, *, what: str) -> Json:
        """Send JSON to a path. Raises as `get`."""
        return exchange(node_id, self.address(node_id, what=what), path, body, what=what)

    def address(self, node_id: int, *, what: str) -> str:
        """host:port of the listener of a broker. Raises HttpUnreachable if it has none, CommandFailed."""
        if node_id not in self._addresses:
            listen = broker_setting(self._cluster, node_id, "strandline.http.listen")
            if not listen:
                raise HttpUnreachable(f"Broker {node_id} cannot {what}, because its strandline.http.listen is empty.")
            host, port = parse_address(listen, name="strandline.http.listen")
            self._addresses[node_id] = join_address(
                self._cluster.host_of(node_id) if host in _EVERYWHERE else host, port
            )
        return self._addresses[node_id]


def exchange(
    node_id: int, address: str, path: str, body: Json | None, *, what: str, timeout_s: float = _TIMEOUT_S
) -> Json:
    """One request to one broker: a POST if there is a body. Raises as `BrokerHttp.get`. Any thread may call it."""
    url = f"http://{address}{path}"
    data = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        with _OPENER.open(urllib.request.Request(url, data=data, headers=headers), timeout=timeout_s) as answer:
            found: Any = json.load(answer)
    except urllib.error.HTTPError as error:
        reason, code = _reason(error)
        raise HttpRefused(
            f"Broker {node_id} cannot {what}: {reason.rstrip('.')}.", reason=reason, status=error.code, code=code
        ) from error
    except (OSError, ValueError) as error:
        raise HttpUnreachable(
            f"Broker {node_id} cannot {what}: it would over HTTP, but does not answer at {url}: {error}. Run this "
            "command where it can reach strandline.http.listen of the brokers."
        ) from error
    return dict(found)


def _reason(error: urllib.error.HTTPError) -> tuple[str, str]:
    try:
        with error:
            found: Any = json.load(error)
        return str(found["error"]), str(found.get("code", ""))
    except (ValueError, KeyError, TypeError):
        return str(error), ""
