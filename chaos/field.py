"""What faults are done to: brokers, their links and disks, the database; and who leads what at the moment."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tests.broker import BROKERS_COMPILED, COMPILED_VARIABLE, BrokerProcess
from tests.clients.two_brokers import QUICK, BrokerCluster
from tests.link import Link
from tests.nursery import Nursery
from tests.postgres import Postgres

from chaos.disks import Disk
from chaos.network import Network, address_of
from chaos.values import Place
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataResponse

START_SECONDS: Final = 180.0
"""How long a broker may take to come back: the machine may be busy."""
SYNC_SECONDS: Final = 60.0
"""How long replicas may take to be in sync when all faults are over."""
_NAMED: Final = 5
_STEP_SECONDS: Final = 0.2
_ANSWER_SECONDS: Final = 2.0
_DISK_BYTES: Final = 8 << 30
_SOCKET: Final = ".s.PGSQL.5432"


@dataclass(slots=True, kw_only=True)
class Field:
    """Without namespaces of its own it has no network and no disks."""

    cluster: BrokerCluster
    database: Postgres
    links: Mapping[int, Link]
    """From each broker to PostgreSQL."""
    network: Network | None
    disks: Mapping[int, Disk]

    @property
    def nodes(self) -> list[int]:
        return [*self.cluster.brokers]

    def leader_of(self, place: Place) -> int | None:
        """The leader, as any broker says; None if none of them knows one."""
        for node_id in self.cluster.running:
            answer = self.metadata(node_id)
            if answer is None:
                continue
            for topic in answer.topics:
                for row in topic.partitions:
                    if (topic.name, row.partition_index) == place and row.leader_id in self.cluster.brokers:
                        return row.leader_id
        return None

    def controller(self) -> int | None:
        """The controller, as any broker says; None if none of them knows it."""
        for node_id in self.cluster.running:
            try:
                with self._connect(node_id) as client:
                    answer = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
            except OSError:
                continue  # it does not answer: the next one may
            if answer.controller_id in self.cluster.brokers:
                return int(answer.controller_id)
        return None

    def metadata(self, node_id: int) -> MetadataResponse | None:
        """All topics, as this broker knows them; None if it does not answer soon."""
        try:
            with self._connect(node_id) as client:
                answer = client.request(ApiKey.METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        except OSError:
            return None
        assert isinstance(answer, MetadataResponse)
        return answer

    def _connect(self, node_id: int) -> Client:
        return self.cluster.connect(node_id, timeout_s=_ANSWER_SECONDS)

    def assigned(self) -> dict[Place, list[int]]:
        """The replicas of every partition, as the first broker that answers knows them."""
        for node_id in self.cluster.running:
            answer = self.metadata(node_id)
            if answer is not None:
                return {
                    (topic.name or "", row.partition_index): list(row.replica_nodes)
                    for topic in answer.topics
                    for row in topic.partitions
                }
        raise OSError("no broker answers a Metadata request")

    def wait_healthy(self) -> None:
        """Until all brokers are alive and all replicas are in sync. Raises AssertionError."""
        self.cluster.wait_alive(*self.nodes)
        deadline = time.monotonic() + SYNC_SECONDS
        pause = threading.Event()
        while lagging := self._lagging():
            if time.monotonic() > deadline:
                named = ", ".join(lagging[:_NAMED])
                raise AssertionError(f"{len(lagging)} partitions are not in sync after {SYNC_SECONDS:g} s: {named}")
            pause.wait(_STEP_SECONDS)

    def _lagging(self) -> list[str]:
        """Partitions with a replica that is not in sync, with what is; one line if no broker tells."""
        for node_id in self.cluster.running:
            answer = self.metadata(node_id)
            if answer is not None:
                return [
                    f"{topic.name}-{row.partition_index} has {row.isr_nodes} of {row.replica_nodes}"
                    for topic in answer.topics
                    for row in topic.partitions
                    if {*row.isr_nodes} != {*row.replica_nodes}
                ]
        return ["no broker answers a Metadata request"]


@contextmanager
def opened(
    directory: Path, database: Postgres, nodes: list[int], settings: Mapping[str, str], *, is_isolated: bool
) -> Iterator[Field]:
    """Start brokers, each with a link to PostgreSQL of its own; end them with all that belongs to them."""
    url = database.new_database()
    with ExitStack() as stack:
        sockets = Path(mkdtemp(prefix="strandline-links-"))  # a short path: that of a Unix socket has 107 characters
        network = Network() if is_isolated else None
        if network is not None:
            stack.callback(network.close)
            network.open()
        links: dict[int, Link] = {}
        disks: dict[int, Disk] = {}
        cluster = BrokerCluster({})
        for node_id in nodes:
            (sockets / str(node_id)).mkdir()
            links[node_id] = Link(_socket_of(url), str(sockets / str(node_id) / _SOCKET))
            broker = BrokerProcess(
                directory / f"broker-{node_id}",
                settings={
                    **QUICK,
                    **settings,
                    "node.id": str(node_id),
                    "strandline.metadata.url": _through(url, sockets / str(node_id)),
                },
            )
            if network is not None:
                disks[node_id] = Disk.mounted(broker.data_dir, size=_DISK_BYTES)
                stack.callback(disks[node_id].unmount)
                nursery = Nursery({**os.environ, COMPILED_VARIABLE: BROKERS_COMPILED}, within=("unshare", "--net"))
                network.add(node_id, nursery)
                broker.nursery, broker.host = nursery, address_of(node_id)
            stack.enter_context(links[node_id])
            cluster.brokers[node_id] = broker
            stack.callback(broker.close)
        stack.callback(cluster.close_admins)
        for broker in cluster.brokers.values():
            broker.spawn()
        for broker in cluster.brokers.values():
            broker.wait_accepting(within=START_SECONDS)
        cluster.wait_alive(*nodes)
        yield Field(cluster=cluster, database=database, links=links, network=network, disks=disks)


def _socket_of(url: str) -> str:
    (directory,) = parse_qs(urlsplit(url).query)["host"]
    return f"{directory}/{_SOCKET}"


def _through(url: str, directory: Path) -> str:
    """The same database, through a socket in this directory."""
    return f"{url.partition('?')[0]}?host={directory}"
