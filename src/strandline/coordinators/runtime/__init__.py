"""What every coordinator that keeps its state in an internal topic needs, whatever the state means.

Why it exists: coordinators of groups (`__consumer_offsets`), transactions (`__transaction_state`) and share partitions
(`__share_group_state`) work in the same way. A broker owns the partitions that it leads, loads each of them to its end,
answers from memory, writes what it decides and counts it when it is committed, and forgets the partition when it no
longer leads it. Kafka calls this the coordinator runtime; the names here are Kafka's where they fit.

A coordinator brings a `CoordinatorShard`: the state of one partition. `CoordinatorRuntime` owns a shard for each
partition that this broker leads, `CoordinatorPartitionWriter` writes for it, `CoordinatorLog` is the port to the topic.
What does not go here: the meaning of a record.
"""

from strandline.coordinators.runtime.context import CoordinatorShard, CoordinatorState
from strandline.coordinators.runtime.log import (
    CoordinatorLog,
    CoordinatorRecord,
    ReadBatch,
    ReadRecord,
    TransactionEnd,
    WriteDone,
    WriteResult,
)
from strandline.coordinators.runtime.replicated_log import InternalTopic, ReplicatedCoordinatorLog
from strandline.coordinators.runtime.results import wait_result
from strandline.coordinators.runtime.runtime import CoordinatorRuntime
from strandline.coordinators.runtime.timers import Timer, Timers
from strandline.coordinators.runtime.writer import (
    BoundedSink,
    CoordinatorPartitionWriter,
    KeyValue,
    RecordSink,
    TransactionalSink,
    client_error,
    write_size,
)

__all__ = [
    "BoundedSink",
    "CoordinatorLog",
    "CoordinatorPartitionWriter",
    "CoordinatorRecord",
    "CoordinatorRuntime",
    "CoordinatorShard",
    "CoordinatorState",
    "InternalTopic",
    "KeyValue",
    "ReadBatch",
    "ReadRecord",
    "RecordSink",
    "ReplicatedCoordinatorLog",
    "Timer",
    "Timers",
    "TransactionEnd",
    "TransactionalSink",
    "WriteDone",
    "WriteResult",
    "client_error",
    "wait_result",
    "write_size",
]
