"""How this broker copies the partitions that other brokers lead.

A fetcher has a connection to one leader and asks for all partitions that it follows there in one request (`fetcher`,
over `connection`). What it asks, and what an answer means, is decided in `state`, which knows no sockets and no time
but what it is told: `session` is what the leader remembers of earlier requests, `followed` a partition, `copying`
what becomes of its log, `cutting` where it is cut. `fetchers` gives each partition to the fetcher of its leader.

What goes here: the follower's side of replication. What does not: the leader's (`replication.leader`), files (`log`).
"""

from strandline.replication.fetching.fetchers import ReplicaFetchers
from strandline.replication.fetching.status import FetchersStatus

__all__ = ["FetchersStatus", "ReplicaFetchers"]
