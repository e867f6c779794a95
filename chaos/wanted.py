"""What a run is asked for, and what follows from that for its brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.clients.tiering import QUICK as TIERING_SETTINGS
from tests.clients.transactions import TRANSACTION_SETTINGS

from chaos import sharing
from chaos.plan import kinds_for
from chaos.switching import HISTORY, SWITCHED
from chaos.values import CLASSIC_GROUP, CONSUMER_GROUP, COPIERS, REPLICATED, SHARE_GROUP

TIERS: Final[Mapping[str, Mapping[str, str]]] = {
    REPLICATED: {},
    "classic": {},
    "diskless": {"diskless.enable": "true"},
    SWITCHED: HISTORY,
}
BROKERS: Final = 3
REPLICAS: Final = 3
"""Of each partition of the replicated tier and of internal topics, unless more or fewer are asked for."""
CLIENTS: Final[Mapping[str, int]] = {
    "txn": 4,
    "idempotent": 2,
    "plain": 1,
    "reader": 2,
    "copy": 2,
    "classic-member": 2,
    "consumer-member": 2,
    "share-member": 2,
    "observer": 1,
}
"""How many of each."""
FEW_CLIENTS: Final[Mapping[str, int]] = dict.fromkeys(CLIENTS, 1)
"""For a run of a minute, whose clients have to begin soon."""
GROUPS: Final[Mapping[str, str]] = {
    "copy": COPIERS,
    "classic-member": CLASSIC_GROUP,
    "consumer-member": CONSUMER_GROUP,
    "share-member": SHARE_GROUP,
}
"""The groups of clients that are in one."""
_LAG_MS: Final = 4000
"""A follower that is cut off leaves the in-sync set within a fault that outlasts a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for."""

    seconds: float
    seed: int
    tiers: Sequence[str]
    directory: Path
    """Logs, objects and the history go there."""
    brokers: int = BROKERS
    replicas: int = REPLICAS
    faults: Sequence[str] = ()
    """Kinds; all that can be done if there are none."""
    is_isolated: bool = False
    """Whether the run has networks and disks of its own."""
    clients: Mapping[str, int] = field(default_factory=lambda: CLIENTS)

    @property
    def history(self) -> Path:
        return self.directory / "history.jsonl"

    @property
    def nodes(self) -> list[int]:
        return [*range(1, self.brokers + 1)]

    @property
    def min_in_sync(self) -> int:
        return min(2, self.replicas)

    @property
    def kinds(self) -> Sequence[str]:
        """What is done. Raises ValueError if something of it cannot be done to such a cluster."""
        possible = kinds_for(self.brokers, is_isolated=self.is_isolated)
        impossible = [kind for kind in self.faults if kind not in possible]
        if impossible:
            raise ValueError(f"{impossible[0]!r} cannot be done here; {', '.join(possible)} can.")
        return self.faults or possible

    @property
    def settings(self) -> Mapping[str, str]:
        """Of all brokers."""
        replicas, in_sync = str(self.replicas), str(self.min_in_sync)
        return {
            **TIERING_SETTINGS,
            **TRANSACTION_SETTINGS,
            **sharing.SETTINGS,
            "strandline.objects.url": f"file://{self.directory.resolve()}/objects",
            "rsm.config.url": f"file://{self.directory.resolve()}/remote",
            "replica.lag.time.max.ms": str(_LAG_MS),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
        }
