"""The network between brokers: one namespace and one address for each, and links that lose what one sends to another.

All of them, and the run with its clients, are on one bridge. A link is cut by a wrong address of the receiver in the
sender's table of neighbours: its packets go nowhere, without an error, as on a cable that was pulled. Packets in the
other direction arrive; connections that exist go on when the link is back, as TCP repeats what was lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.nursery import Nursery
from tests.waiting import wait_until

from chaos.isolation import command, inside

_BRIDGE: Final = "bridge"
_PORT: Final = "eth0"
_NOWHERE: Final = "02:00:00:00:00:fe"
_HUB: Final = 254


def address_of(node_id: int) -> str:
    return f"10.77.0.{node_id}"


@dataclass(slots=True)
class Network:
    """Brokers by node id, as processes in whose namespaces they are."""

    nurseries: dict[int, Nursery] = field(default_factory=dict)

    def open(self) -> None:
        """Make the bridge, in the namespace of the run. Raises OSError."""
        command("ip", "link", "add", _BRIDGE, "type", "bridge")
        command("ip", "address", "add", f"{address_of(_HUB)}/24", "dev", _BRIDGE)
        command("ip", "link", "set", _BRIDGE, "up")

    def add(self, node_id: int, nursery: Nursery) -> None:
        """Plug the namespace of a broker in. Raises OSError."""
        name, pid = f"broker{node_id}", nursery.pid
        wait_until(lambda: _namespace_of(pid) != _namespace_of(os.getpid()), what=f"the namespace of broker {node_id}")
        command("ip", "link", "add", name, "type", "veth", "peer", "name", _PORT, "netns", str(pid))
        command("ip", "link", "set", name, "master", _BRIDGE, "up")
        command(*inside(pid, "ip", "link", "set", "lo", "up"))
        command(*inside(pid, "ip", "address", "add", f"{address_of(node_id)}/24", "dev", _PORT))
        command(*inside(pid, "ip", "link", "set", _PORT, "up"))
        self.nurseries[node_id] = nursery

    @contextmanager
    def cut(self, links: Iterable[tuple[int, int]]) -> Iterator[None]:
        """Lose what the first of each pair sends to the second, until the end of the block."""
        done: list[tuple[int, int]] = []
        try:
            for sender, receiver in links:
                self._tell(sender, "replace", receiver, "lladdr", _NOWHERE, "nud", "permanent")
                done.append((sender, receiver))
            yield
        finally:
            for sender, receiver in done:
                self._tell(sender, "delete", receiver)

    def _tell(self, sender: int, what: str, receiver: int, *words: str) -> None:
        pid = self.nurseries[sender].pid
        command(*inside(pid, "ip", "neighbour", what, address_of(receiver), *words, "dev", _PORT))

    def close(self) -> None:
        """End the processes that hold the namespaces; these end with the brokers."""
        for nursery in self.nurseries.values():
            nursery.close()


def _namespace_of(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def between(node_id: int, others: Iterable[int]) -> list[tuple[int, int]]:
    """The links between a broker and each of the others, in both directions."""
    return [link for other in others if other != node_id for link in ((node_id, other), (other, node_id))]
