"""What a cluster costs that nobody asks for anything."""

from __future__ import annotations

import time
from typing import Final

from bench.cluster.nodes import Cluster
from bench.measures import Measured

TOPIC_PARTITIONS: Final = 500


def idle(cluster: Cluster, partitions: int, *, settle_seconds: float, seconds: float) -> Measured:
    """Processor time of each broker with so many partitions, a while after they were created."""
    topics, rest = divmod(partitions, TOPIC_PARTITIONS)
    sizes = [TOPIC_PARTITIONS] * topics + ([rest] if rest else [])
    cluster.create({f"idle-{number}": size for number, size in enumerate(sizes)})
    time.sleep(settle_seconds)
    before, database_before, began = cluster.cpu_by_node(), cluster.cpu_of_database(), time.perf_counter()
    time.sleep(seconds)
    lasted = time.perf_counter() - began
    after, database = cluster.cpu_by_node(), cluster.cpu_of_database() - database_before
    shares = [(after[node_id] - before[node_id]) / lasted * 100 for node_id in before]
    memory = [broker.process.usage().rss_bytes / 1e6 for broker in cluster.brokers.values()]
    return {
        "cluster.idle.mean": sum(shares) / len(shares),
        "cluster.idle.most": max(shares),
        "cluster.idle.database": database / lasted * 100,
        "cluster.idle.memory": sum(memory) / len(memory),
    }
