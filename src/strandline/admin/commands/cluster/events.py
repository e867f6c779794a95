"""What happens to a cluster, as values that a screen shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from strandline.admin.commands.cluster.view import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """Something that happened."""

    kind: str
    """For programs."""
    text: str
    """For people: a sentence without a full stop."""
    node_id: int | None = None
    """The broker that it happened to, None for the cluster."""
    is_trouble: bool = False
    details: Mapping[str, object] = field(default_factory=dict)
    """More for programs."""


class ClusterScreen(Protocol):
    """Shows a cluster. Raises OSError when there is nothing left to print to."""

    def tell(self, event: ClusterEvent) -> None:
        """Show an event, at once."""

    def show(self, view: ClusterView) -> None:
        """Show the state of the cluster, or leave that to a later view."""

    def close(self) -> None:
        """Leave the terminal as it was found. May be called twice."""
