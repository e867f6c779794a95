"""librdkafka's own test runner once more: its consumers speak the protocol of KIP-848 (`group.protocol=consumer`)."""

from __future__ import annotations

from interop import librdkafka
from interop.broker import Target
from interop.results import Outcome

NAME = "librdkafka-consumer"


def why_unavailable() -> str | None:
    return librdkafka.why_unavailable()


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    return librdkafka.run(target, only, group_protocol="consumer")
