"""Replicas of partitions: leadership, the in-sync set, the high watermark, and who waits for it.

What goes here: the state of each partition that this broker holds a replica of, and the registry that makes
it follow the metadata image. What does not: files (`log`), choosing between tiers (`hybrid`), wire formats.
"""

from strandline.log import FetchIsolation
from strandline.replication.partition import Appended, Partition, Watcher
from strandline.replication.replica_manager import LeadershipListener, ReplicaManager
from strandline.replication.writer import LogWriter

__all__ = ["Appended", "FetchIsolation", "LeadershipListener", "LogWriter", "Partition", "ReplicaManager", "Watcher"]
