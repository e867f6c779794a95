"""Two kinds of clusters, each of three nodes: brokers of ours on one database, combined nodes of Apache Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

from bench import kafka
from bench.cluster import database
from bench.cluster.nodes import Cluster
from bench.process import free_port
from bench.systems import HOUSEKEEPING, START_SECONDS, ApacheKafka, Strandline

NODES: Final = (1, 2, 3)


class ClusterSystem(Protocol):
    """One kind of cluster."""

    name: str

    def why_unavailable(self) -> str | None: ...

    def new_cluster(self, directory: Path) -> Cluster:
        """Three nodes on fresh directories, not started yet."""


class StrandlineNodes:
    """Brokers of the working tree on a PostgreSQL server of their own."""

    name = "strandline"

    def __init__(self, system: Strandline, replicas: int) -> None:
        self._system, self._replicas = system, replicas

    def why_unavailable(self) -> str | None:
        return self._system.why_unavailable() or database.why_unavailable()

    def new_cluster(self, directory: Path) -> Cluster:
        return _OnDatabase(self._system, directory, self._replicas)


class _OnDatabase(Cluster):
    """The database runs as long as the block."""

    def __init__(self, system: Strandline, directory: Path, replicas: int) -> None:
        super().__init__(system.name, {}, replicas)
        self._system, self._directory = system, directory
        self._database: database.Database | None = None

    def start(self) -> None:
        self._database = database.Database(self._directory / "postgres")
        shared = {
            "strandline.metadata.url": self._database.url,
            "strandline.objects.url": f"file://{self._directory.resolve()}/objects",
        }
        self.brokers = {
            node_id: self._system.new_broker(self._directory / f"broker-{node_id}", {**shared, "node.id": str(node_id)})
            for node_id in NODES
        }
        super().start()

    def stop(self) -> None:
        with ExitStack() as after:
            if self._database is not None:
                after.callback(self._database.stop)
            if self.brokers:
                super().stop()

    def cpu_of_database(self) -> float:
        return 0.0 if self._database is None else self._database.cpu_seconds()


class KafkaNodes:
    """Combined nodes, each broker and controller, with Kafka's defaults and the 1 GB heap of its start script."""

    name = "kafka"

    def __init__(self, system: ApacheKafka, replicas: int) -> None:
        self._system, self._replicas = system, replicas

    def why_unavailable(self) -> str | None:
        return self._system.why_unavailable()

    def new_cluster(self, directory: Path) -> Cluster:
        controllers = {node_id: f"127.0.0.1:{free_port()}" for node_id in NODES}
        libraries = self._system.libraries
        brokers = {}
        for node_id in NODES:
            port = free_port()
            brokers[node_id] = kafka.KafkaBroker(
                libraries,
                directory / f"broker-{node_id}",
                port=port,
                settings={**HOUSEKEEPING, **node_settings(node_id, port, controllers)},
                start_timeout=START_SECONDS,
            )
        return Cluster(self.name, brokers, self._replicas)


def node_settings(node_id: int, port: int, controllers: Mapping[int, str]) -> dict[str, str]:
    """What makes a node of Kafka one of several: the voters, and the defaults of internal topics."""
    replicas = str(len(controllers))
    return {
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{voter}@{address}" for voter, address in controllers.items()),
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controllers[node_id]}",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "2",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "2",
    }
