"""How commands ask a broker what Kafka's protocol has no request for: over HTTP, at its `strandline.http.listen`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Final

from strandline.admin.commands.client import Cluster, CommandFailed, Json
from strandline.admin.commands.configs import broker_setting
from strandline.config.listeners import join_address, parse_address

_TIMEOUT_S: Final = 30.0
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


class HttpUnreachable(CommandFailed):
    """The HTTP listener of a broker is off, or does not answer. Another broker may."""


class BrokerHttp:
    """The HTTP listeners of a cluster's brokers. Where they are is asked once for each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._addresses: dict[int, str] = {}

    def get(self, node_id: int, path: str, *, what: str) -> Json:
        """The JSON at a path. Raises HttpUnreachable, and CommandFailed with the broker's sentence.

        `what` completes "Broker 1 cannot ..." and is a verb with its object.
        """
        return self._ask(node_id, path, None, what=what)

    def post(self, node_id: int, path: str, body: Json, *, what: str) -> Json:
        """Send JSON to a path. Raises as `get`."""
        return self._ask(node_id, path, json.dumps(body).encode(), what=what)

    def _ask(self, node_id: int, path: str, body: bytes | None, *, what: str) -> Json:
        url = f"http://{self._address(node_id, what)}{path}"
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data=body, headers=headers), timeout=_TIMEOUT_S
            ) as answer:
                found: Any = json.load(answer)
        except urllib.error.HTTPError as error:
            raise CommandFailed(f"Broker {node_id} cannot {what}: {_reason(error).rstrip('.')}.") from error
        except (OSError, ValueError) as error:
            raise HttpUnreachable(
                f"Broker {node_id} cannot {what}: it would over HTTP, but does not answer at {url}: {error}. Run this "
                "command where it can reach strandline.http.listen of the brokers."
            ) from error
        return dict(found)

    def _address(self, node_id: int, what: str) -> str:
        if node_id not in self._addresses:
            listen = broker_setting(self._cluster, node_id, "strandline.http.listen")
            if not listen:
                raise HttpUnreachable(f"Broker {node_id} cannot {what}, because its strandline.http.listen is empty.")
            host, port = parse_address(listen, name="strandline.http.listen")
            self._addresses[node_id] = join_address(
                self._cluster.host_of(node_id) if host in _EVERYWHERE else host, port
            )
        return self._addresses[node_id]


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError):
        return str(error)
