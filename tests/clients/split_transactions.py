"""Producers of single requests whose coordinator and partitions are on two brokers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from tests.clients.transactions import client_of
from tests.clients.two_brokers import SECONDS, BrokerCluster
from tests.waiting import wait_until
from tests.wirelevel.transactional import (
    RawTransactionalProducer,
    coordinator_error,
    end_of,
    last_stable_offset,
    open_producers,
    read_values,
    wait_for_coordinator,
)

E = ErrorCode
PARTITIONS = 4
RETRIED = (
    E.NOT_ENOUGH_REPLICAS,
    E.CONCURRENT_TRANSACTIONS,
    E.NOT_LEADER_OR_FOLLOWER,
    E.COORDINATOR_NOT_AVAILABLE,
    E.UNKNOWN_TOPIC_OR_PARTITION,
)

_numbers = itertools.count(1)


class Pair:
    """Connections to both brokers, and what is asked of whichever is responsible."""

    def __init__(self, cluster: BrokerCluster, clients: dict[int, Client]) -> None:
        self.cluster, self.clients = cluster, clients

    def topic(self, config: Mapping[str, str] | None = None) -> str:
        name = f"topic-{next(_numbers)}"
        self.cluster.create(name, partitions=PARTITIONS, via=1, config=config)
        assert set(self.cluster.leaders(name, 1)) == {1, 2}
        return name

    def name_on(self, node_id: int, *, kind: int = 1) -> str:
        """A transactional id, or a group, that this broker coordinates, as every broker knows."""
        for _ in range(100):
            name = f"name-{next(_numbers)}"
            if wait_for_coordinator(self.clients[1], name, kind=kind) == node_id:
                self._wait_known(name, kind, node_id)
                return name
        raise AssertionError(f"nothing is coordinated by broker {node_id}")

    def _wait_known(self, name: str, kind: int, node_id: int) -> None:
        """The broker that was asked may have created the coordinators' topic: the others hear of it a moment later."""
        for client in self.clients.values():
            wait_until(
                lambda at=client: wait_for_coordinator(at, name, kind=kind) == node_id,  # type: ignore[misc]
                within=SECONDS,
                what=f"every broker to name broker {node_id} as the coordinator of {name}",
            )
        wait_until(
            lambda: coordinator_error(self.clients[node_id], name, kind) is not E.COORDINATOR_LOAD_IN_PROGRESS,
            within=SECONDS,
            what=f"the coordinator of {name} to have read its log",
        )

    def producer(self, coordinator: int, *, is_new: bool = False, timeout_ms: int = 60_000) -> SplitProducer:
        name = self.name_on(coordinator)
        raw = RawTransactionalProducer(self.clients[coordinator], name, is_new=is_new, timeout_ms=timeout_ms)
        return SplitProducer(self, raw.initialised(), coordinator)

    def leader(self, topic: str, partition: int) -> Client:
        return self.clients[self.cluster.leaders(topic, self.cluster.running[0])[partition]]

    def partition_on(self, topic: str, node_id: int) -> int:
        return self.cluster.leaders(topic, self.cluster.running[0]).index(node_id)


class SplitProducer:
    """Talks to its coordinator and to the leaders of partitions."""

    def __init__(self, pair: Pair, raw: RawTransactionalProducer, coordinator: int) -> None:
        self.pair, self.raw, self.coordinator = pair, raw, coordinator

    def write(self, topic: str, partition: int, value: bytes, *, via: int | None = None) -> ErrorCode:
        self.raw.client = self.pair.leader(topic, partition) if via is None else self.pair.clients[via]
        try:
            return self.raw.write(topic, value, partition=partition)
        finally:
            self.raw.client = self.pair.clients[self.coordinator]

    def begin(self, topic: str, *partitions: int, value: bytes = b"x") -> None:
        if not self.raw.is_new:
            wait_until(lambda: self._are_added([(topic, number) for number in partitions]), within=SECONDS)
        for number in partitions:
            wait_until(lambda at=number: self._is_taken(topic, at, value), within=SECONDS)  # type: ignore[misc]

    def _are_added(self, partitions: list[tuple[str, int]]) -> bool:
        codes = set(self.raw.add(*partitions))
        assert codes <= {E.NONE, *RETRIED}, codes
        return codes == {E.NONE}

    def _is_taken(self, topic: str, partition: int, value: bytes) -> bool:
        code = self.write(topic, partition, value)
        assert code in (E.NONE, *RETRIED), code
        return code is E.NONE

    def wait_state(self, state: str) -> None:
        wait_until(lambda: self.raw.state() == state, within=SECONDS, what=f"{self.raw.transactional_id}: {state}")


@contextmanager
def connected_pair(cluster: BrokerCluster) -> Iterator[Pair]:
    with ExitStack() as stack:
        clients = {
            node_id: stack.enter_context(client_of(broker.bootstrap))
            for node_id, broker in cluster.brokers.items()
            if broker.is_running
        }
        yield Pair(cluster, clients)


def assert_settled(pair: Pair, topic: str, expected: list[bytes]) -> None:
    """Each partition shows exactly these values, and nothing is open in it."""
    for number in range(PARTITIONS):
        leader = pair.leader(topic, number)
        assert open_producers(leader, topic, number) == []
        assert last_stable_offset(leader, topic, number) == end_of(leader, topic, number)
        assert read_values(leader, topic, number) == expected
