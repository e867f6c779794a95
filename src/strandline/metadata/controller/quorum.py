"""The metadata log as Kafka's tools look at it: a partition with a leader, its epoch, and replicas that follow it.

The log is in a database; its leader is the active controller. Every registered broker is a voter in the sense that
matters: it has a controller that takes over when the lease is free. There is no voting, one broker is enough. Brokers
that are away stay in the list, as voters of Kafka do, until they are unregistered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from strandline.metadata.controller.sessions import Contact
from strandline.metadata.image import Listener, MetadataImage
from strandline.metadata.log.store import Term

UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """A broker that reads the metadata log. Times are in milliseconds since 1970; -1: not known."""

    node_id: int
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumStatus:
    """The leader of the metadata log, the offset after its last record, its replicas, and where they are reached."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    listeners: Mapping[int, tuple[Listener, ...]]


def describe_quorum(
    image: MetadataImage, term: Term, contact: Callable[[int], Contact], *, now_ms: int
) -> QuorumStatus:
    """The quorum as the active controller sees it; `contact` knows what brokers said in their heartbeats."""
    end_offset = image.offset + 1
    leader = QuorumReplica(
        node_id=term.node_id, log_end_offset=end_offset, last_fetch_ms=now_ms, last_caught_up_ms=now_ms
    )
    others = [_follower(node_id, contact(node_id), now_ms) for node_id in image.brokers if node_id != term.node_id]
    return QuorumStatus(
        leader_id=term.node_id,
        epoch=term.epoch,
        high_watermark=end_offset,
        voters=tuple(sorted([leader, *others], key=lambda replica: replica.node_id)),
        listeners={node_id: broker.listeners for node_id, broker in sorted(image.brokers.items())},
    )


def _follower(node_id: int, contact: Contact, now_ms: int) -> QuorumReplica:
    def moment(seconds_ago: float | None) -> int:
        return UNKNOWN if seconds_ago is None else now_ms - int(seconds_ago * 1000)

    return QuorumReplica(
        node_id=node_id,
        log_end_offset=UNKNOWN if contact.metadata_offset < 0 else contact.metadata_offset + 1,
        last_fetch_ms=moment(contact.seconds_ago),
        last_caught_up_ms=moment(contact.caught_up_seconds_ago),
    )
