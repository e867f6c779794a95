"""Replicas of partitions: leadership, the in-sync set, the high watermark, and the requests that wait for it.

What goes here: the state of each partition that this broker holds a replica of, and the registry that makes
it follow the metadata image. What does not: files (`log`), choosing between tiers (`hybrid`), wire formats.
"""

from strandline.replication.partition import Appended, Partition
from strandline.replication.replica_manager import LeadershipListener, ReplicaManager
from strandline.replication.writer import LogWriter

__all__ = ["Appended", "LeadershipListener", "LogWriter", "Partition", "ReplicaManager"]
