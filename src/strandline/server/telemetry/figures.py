"""The newest metrics of clients, for `/metrics`.

Bounded in clients, in numbers of a client, and in bytes of their names: the first clients that push keep their places
until they have been silent for long or have said good-bye; further ones are counted and not shown, so that those that
are shown have no gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from strandline.server.telemetry.otlp import MOST_TEXT_BYTES, Attributes, MetricSample

MOST_CLIENTS: Final = 100
MOST_SAMPLES: Final = 250
MOST_NAME_BYTES: Final = 256 * 1024


class PushedSample(NamedTuple):
    """One number as it is shown."""

    client_id: str
    instance_id: UUID
    metric: str
    attributes: str
    value: float


class _Client:
    __slots__ = ("_name_bytes", "client_id", "expires_at", "samples")

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id[:MOST_TEXT_BYTES]
        self.expires_at = 0.0
        self.samples: dict[tuple[str, Attributes], float] = {}
        self._name_bytes = 0

    def empty(self) -> dict[tuple[str, Attributes], float]:
        """Begin with no numbers; those it had."""
        before, self.samples, self._name_bytes = self.samples, {}, 0
        return before

    def put(self, key: tuple[str, Attributes], value: float) -> bool:
        """Show a number; False if there is no room for one more."""
        if key not in self.samples:
            size = len(key[0]) + sum(len(name) + len(text) for name, text in key[1])
            if len(self.samples) >= MOST_SAMPLES or self._name_bytes + size > MOST_NAME_BYTES:
                return False
            self._name_bytes += size
        self.samples[key] = value
        return True


class PushedFigures:
    """What clients have pushed. Numbers that count from push to push are summed up."""

    def __init__(self) -> None:
        self._clients: dict[UUID, _Client] = {}
        self.dropped = 0
        """Numbers that were pushed and are not shown, since there are too many."""

    def add(
        self,
        instance_id: UUID,
        client_id: str,
        samples: Sequence[MetricSample],
        *,
        now: float,
        expires_at: float,
    ) -> None:
        """A client has pushed these. They are shown until it pushes again, or until `expires_at`."""
        client = self._clients.get(instance_id)
        if client is None:
            self._forget_silent(now)
            if len(self._clients) >= MOST_CLIENTS:
                self.dropped += len(samples)
                return
            client = self._clients[instance_id] = _Client(client_id)
        client.expires_at = expires_at
        before = client.empty()
        for sample in samples:
            key = (sample.name, sample.attributes)
            value = sample.value + before.get(key, 0.0) if sample.is_delta else sample.value
            if not client.put(key, value):
                self.dropped += 1
        for key, value in before.items():  # a client may leave out what has not changed
            if key not in client.samples:
                client.put(key, value)

    def shown(self, now: float) -> Iterator[PushedSample]:
        """Every number, client by client."""
        self._forget_silent(now)
        for instance_id, client in self._clients.items():
            for (metric, attributes), value in client.samples.items():
                text = ",".join(f"{name}={attribute}" for name, attribute in attributes)
                yield PushedSample(client.client_id, instance_id, metric, text, value)

    def _forget_silent(self, now: float) -> None:
        silent = [instance_id for instance_id, client in self._clients.items() if client.expires_at <= now]
        for instance_id in silent:
            del self._clients[instance_id]
