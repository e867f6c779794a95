"""Replicas of partitions: leadership, the in-sync set, the high watermark, and the requests that wait for it.

What goes here: the state of each partition that this broker holds a replica of, and the registry that makes
it follow the metadata image. What does not: files (`log`), choosing between tiers (`hybrid`), wire formats.
"""

from strandline.replication.append import ACKS_ALL, Append, Appended, Done
from strandline.replication.completion import Completion
from strandline.replication.directory_reports import AssignsDirectories, DirectoryReports
from strandline.replication.fetching import FetchersStatus, ReplicaFetchers
from strandline.replication.first_batches import FirstBatches, with_refused
from strandline.replication.followers import FollowerVisits
from strandline.replication.gate import HeldAppend
from strandline.replication.isr_changes import AltersPartitions, IsrChangeSender
from strandline.replication.leader import LeaderRole
from strandline.replication.leader_client import LeaderClient
from strandline.replication.leader_environment import LeaderEnvironment, ReplicaBrokers
from strandline.replication.leader_upkeep import LeaderUpkeep
from strandline.replication.offsets import last_fetchable
from strandline.replication.partition import Partition, Role
from strandline.replication.replica_manager import LeadershipListener, ReplicaManager, every_partition
from strandline.replication.replicated import append_own, wait_pending_appends, wait_replicated, when_replicated
from strandline.replication.writer import LogWriter

__all__ = [
    "ACKS_ALL",
    "AltersPartitions",
    "Append",
    "Appended",
    "AssignsDirectories",
    "Completion",
    "DirectoryReports",
    "Done",
    "FetchersStatus",
    "FirstBatches",
    "FollowerVisits",
    "HeldAppend",
    "IsrChangeSender",
    "LeaderClient",
    "LeaderEnvironment",
    "LeaderRole",
    "LeaderUpkeep",
    "LeadershipListener",
    "LogWriter",
    "Partition",
    "ReplicaBrokers",
    "ReplicaFetchers",
    "ReplicaManager",
    "Role",
    "append_own",
    "every_partition",
    "last_fetchable",
    "wait_pending_appends",
    "wait_replicated",
    "when_replicated",
    "with_refused",
]
