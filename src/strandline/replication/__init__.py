"""Replicas of partitions: leadership, the in-sync set, the high watermark, and the requests that wait for it.

What goes here: the state of each partition that this broker holds a replica of, and the registry that makes
it follow the metadata image. What does not: files (`log`), choosing between tiers (`hybrid`), wire formats.
"""

from strandline.replication.append import Append, Appended, Done
from strandline.replication.partition import Partition
from strandline.replication.replica_manager import LeadershipListener, ReplicaManager
from strandline.replication.writer import LogWriter

__all__ = ["Append", "Appended", "Done", "LeadershipListener", "LogWriter", "Partition", "ReplicaManager"]
