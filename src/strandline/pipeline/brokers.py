"""Which broker to ask: the brokers of a cluster, their HTTP listeners, and the leaders of partitions, as last known."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from strandline.client import BrokerHttp, Cluster, CommandFailed, check, sentences
from strandline.config.listeners import join_address, parse_address
from strandline.wire.errors import ErrorCode

T = TypeVar("T")
_TIMEOUT_S: Final = 10.0


class BrokersUnavailable(CommandFailed):
    """No broker that could answer did so in time. The request may have taken effect, and may be repeated later."""


class RequestRefused(CommandFailed):
    """A broker understood the request and will not do it, however often it is repeated."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code
        """The name of Kafka's error."""


class BrokerBook:
    """The brokers of one cluster. Several threads may share it.

    They share what they learn, and each has its own connection to learn it: a thread that waits for a broker that does
    not answer holds up no other thread. All methods raise CommandFailed if another attempt may succeed, and
    RequestRefused.
    """

    def __init__(self, bootstrap: str) -> None:
        """Raises CommandFailed if `bootstrap` has no addresses of brokers."""
        self._bootstrap = [address.strip() for address in bootstrap.split(",") if address.strip()]
        if not self._bootstrap:
            raise CommandFailed("--bootstrap names no broker. Give HOST:PORT of one or more, separated by commas.")
        with sentences():
            for address in self._bootstrap:
                parse_address(address, name="--bootstrap")
        self._own = threading.local()
        self._lock = threading.Lock()  # never held while a broker is asked
        self._clusters: list[Cluster] = []
        self._addresses: dict[int, str] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._turn: list[int] = []
        self._heard_of: list[str] = []

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for cluster in self._clusters:
                cluster.close()
            self._clusters.clear()

    def anybody(self) -> int:
        """A broker that is alive: the same again, as long as it answers."""
        with self._lock:
            if self._turn:
                return self._turn[0]
        alive = self._with_cluster(lambda cluster: cluster.brokers())
        if not alive:
            raise CommandFailed(f"The cluster at {self._bootstrap[0]} has no broker that is alive.")
        with self._lock:
            self._turn = alive
            return alive[0]

    def leader(self, topic: str, partition: int) -> int:
        """The leader of a partition."""
        with self._lock:
            known = self._leaders.get((topic, partition))
        if known is not None:
            return known
        found = self._with_cluster(lambda cluster: _leaders_of(cluster, topic))
        if (topic, partition) not in found:
            raise CommandFailed(f"Partition {topic}-{partition} has no leader at the moment.")
        with self._lock:
            self._leaders.update(found)
        return found[topic, partition]

    def http_address(self, node_id: int, *, what: str) -> str:
        """host:port of a broker's HTTP listener."""
        with self._lock:
            known = self._addresses.get(node_id)
        if known is not None:
            return known
        try:
            found = self._with_cluster(lambda cluster: BrokerHttp(cluster).address(node_id, what=what))
        except CommandFailed:
            self.lost(node_id)
            raise
        with self._lock:
            self._addresses[node_id] = found
        return found

    def lost(self, node_id: int) -> None:
        """A broker did not answer: it may be gone, or be back elsewhere, and others may lead now."""
        self.passed_over(node_id)
        self.forget_leaders()

    def passed_over(self, node_id: int) -> None:
        """A broker cannot answer now: others are asked first."""
        with self._lock:
            self._addresses.pop(node_id, None)
            if node_id in self._turn:
                self._turn.remove(node_id)  # after the last one, the metadata are asked again

    def forget_leaders(self) -> None:
        """Leaders have changed."""
        with self._lock:
            self._leaders.clear()

    def _with_cluster(self, ask: Callable[[Cluster], T]) -> T:
        """The answer of the broker that answered last; if it does not, of those named at the beginning, or heard of."""
        cluster: Cluster | None = getattr(self._own, "cluster", None)
        if cluster is not None:
            try:
                with sentences():
                    return ask(cluster)
            except RequestRefused:
                raise
            except CommandFailed:
                self._forget(cluster)
        with self._lock:
            addresses = tuple(dict.fromkeys((*self._bootstrap, *self._heard_of)))
        for address in addresses[:-1]:
            try:
                return self._with_broker(address, ask)
            except RequestRefused:
                raise
            except CommandFailed:
                continue  # the failure of the last one is reported
        return self._with_broker(addresses[-1], ask)

    def _with_broker(self, address: str, ask: Callable[[Cluster], T]) -> T:
        cluster = Cluster(address, timeout_s=_TIMEOUT_S)
        with self._lock:
            self._clusters.append(cluster)
        try:
            with sentences():
                brokers = cluster.metadata(()).brokers
                answer = ask(cluster)
        except RequestRefused:
            self._own.cluster = cluster
            raise
        except CommandFailed:
            self._forget(cluster)
            raise
        self._own.cluster = cluster
        with self._lock:
            self._heard_of = [join_address(broker.host, broker.port) for broker in brokers]
        return answer

    def _forget(self, cluster: Cluster) -> None:
        self._own.cluster = None
        with self._lock:
            if cluster in self._clusters:
                self._clusters.remove(cluster)
        cluster.close()


def _leaders_of(cluster: Cluster, topic: str) -> dict[tuple[str, int], int]:
    found = cluster.metadata([topic]).topics[0]
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise RequestRefused(f"There is no topic {topic}.", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name)
    if found.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
        check(found.error_code, None, f"The leaders of {topic} cannot be found")
    return {(topic, row.partition_index): row.leader_id for row in found.partitions if row.leader_id >= 0}
