"""Which brokers get the replicas of new partitions. Randomness is an argument.

The rules are Kafka's striped placer: leaders go round the racks and, inside a rack, round its brokers; the replicas of
a partition are spread over as many racks as possible; fenced brokers are used only when the others do not suffice and
never as the first replica. Partitions that are added to a topic continue after its last ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.clock import Chance
from strandline.errors import InvalidReplicationFactor


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    node_id: int
    rack: str | None
    fenced: bool


class _Ring:
    """Brokers in a circle. Each partition starts one broker further than the partition before."""

    def __init__(self, nodes: Sequence[int], chance: Chance, last: int | None = None) -> None:
        self.nodes = sorted(nodes)
        self._offset = self.nodes.index(last) if last in self.nodes else chance.below(len(nodes))
        self._epoch = 0
        self._index = 0

    def next(self, epoch: int) -> int | None:
        """The next broker of this partition (`epoch`), or None after a whole turn."""
        if not self.nodes:
            return None
        if self._epoch != epoch:
            self._epoch, self._index = epoch, 0
            self._offset = (self._offset + 1) % len(self.nodes)
        if self._index >= len(self.nodes):
            return None
        node = self.nodes[(self._offset + self._index) % len(self.nodes)]
        self._index += 1
        return node

    def shuffle(self, chance: Chance) -> None:
        self.nodes = chance.shuffled(self.nodes)


class _Rack:
    def __init__(self, brokers: Sequence[UsableBroker], chance: Chance, last: int | None) -> None:
        self.unfenced = _Ring([broker.node_id for broker in brokers if not broker.fenced], chance, last)
        self.fenced = _Ring([broker.node_id for broker in brokers if broker.fenced], chance)

    def next(self, epoch: int) -> int | None:
        node = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if node is None else node


class _RackList:
    def __init__(self, brokers: Sequence[UsableBroker], chance: Chance, existing: Sequence[Sequence[int]]) -> None:
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        used = [node for replicas in reversed(existing) for node in replicas]  # latest partition first
        lasts = {name: _first_of(by_rack[name], used) for name in names}
        self._racks = [_Rack(by_rack[name], chance, lasts[name]) for name in names]
        self._chance = chance
        self._unfenced = sum(1 for broker in brokers if not broker.fenced)
        rack_of = {broker.node_id: names.index(broker.rack) for broker in brokers}
        last_rack = rack_of.get(existing[-1][0]) if existing else None
        self._offset = chance.below(len(self._racks)) if last_rack is None else last_rack
        self._epoch = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of the next partition, preferred leader first."""
        if self._epoch and self._unfenced > 1 and self._epoch % self._unfenced == 0:
            self._shuffle()
        self._epoch += 1
        self._offset = (self._offset + 1) % len(self._racks)
        leader, leader_rack = self._leader()
        replicas = [leader]
        turn = self._offset
        skip_once = leader_rack  # its turn is taken by the leader
        while len(replicas) < replication_factor:
            rack = self._racks[turn]
            turn = (turn + 1) % len(self._racks)
            if rack is skip_once:
                skip_once = None
                continue
            node = rack.next(self._epoch)
            if node is not None:
                replicas.append(node)
        return tuple(replicas)

    def _leader(self) -> tuple[int, _Rack | None]:
        for step in range(len(self._racks)):
            rack = self._racks[(self._offset + step) % len(self._racks)]
            node = rack.unfenced.next(self._epoch)
            if node is not None:
                return node, rack
        raise AssertionError("There is an unfenced broker: place_partitions() has checked it.")

    def _shuffle(self) -> None:
        self._racks = self._chance.shuffled(self._racks)
        for rack in self._racks:
            rack.unfenced.shuffle(self._chance)
            rack.fenced.shuffle(self._chance)


def _first_of(brokers: Sequence[UsableBroker], used: Sequence[int]) -> int | None:
    nodes = {broker.node_id for broker in brokers}
    return next((node for node in used if node in nodes), None)


def place_partitions(
    count: int,
    replication_factor: int,
    brokers: Iterable[UsableBroker],
    chance: Chance,
    existing: Sequence[Sequence[int]] = (),
) -> list[tuple[int, ...]]:
    """Replicas for `count` partitions, after the `existing` ones of the topic. Raises InvalidReplicationFactor."""
    usable = list(brokers)
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): "
            "the replication factor must be larger than 0."
        )
    if not any(not broker.fenced for broker in usable):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced."
        )
    if replication_factor > len(usable):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(usable)} broker(s) are registered."
        )
    racks = _RackList(usable, chance, existing)
    return [racks.place(replication_factor) for _ in range(count)]
