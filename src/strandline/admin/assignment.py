"""What consumers tell each other through the coordinator, which carries it as bytes: their partitions."""

from __future__ import annotations

from typing import Final

from strandline.wire.messages.consumer_protocol_assignment import read_consumer_protocol_assignment
from strandline.wire.primitives import MalformedRequest

CONSUMER_PROTOCOL: Final = "consumer"
# The bytes begin with a version. Its newest form begins like every other one, and only that beginning is needed.
_OLDEST_VERSION: Final = 0
_VERSION_BYTES: Final = 2


def assigned_partitions(protocol_type: str, assignment: bytes) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of a consumer's assignment; none if the bytes are of another protocol or broken."""
    if protocol_type != CONSUMER_PROTOCOL or not assignment:
        return []
    try:
        message, _ = read_consumer_protocol_assignment(memoryview(assignment), _VERSION_BYTES, _OLDEST_VERSION)
    except MalformedRequest:
        return []
    return sorted((row.topic, partition) for row in message.assigned_partitions for partition in row.partitions)
