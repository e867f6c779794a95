"""A partition's local log, byte-compatible with Kafka's directory layout.

Segments and their indexes, leader epochs, producer state, recovery, retention, and the log directories of a broker.
What does not live here: replication (which broker may append, when a record counts as replicated), and requests.
"""

from strandline.log.appender import PendingAppend
from strandline.log.closed_segment import ClosedSegment
from strandline.log.environment import LogDirectory, LogEnvironment
from strandline.log.flusher import FlushPlan
from strandline.log.following import ReplicatedBatches
from strandline.log.incarnations import read_boot_id
from strandline.log.loading import LoadedOffsets, create_log, load_log
from strandline.log.manager import LogManager
from strandline.log.segment import LogSegment
from strandline.log.segment_builder import SegmentBuilder
from strandline.log.segment_file import SegmentFile
from strandline.log.unified import UnifiedLog
from strandline.log.values import AppendOrigin, FileSlice, LogAppendInfo

__all__ = [
    "AppendOrigin",
    "ClosedSegment",
    "FileSlice",
    "FlushPlan",
    "LoadedOffsets",
    "LogAppendInfo",
    "LogDirectory",
    "LogEnvironment",
    "LogManager",
    "LogSegment",
    "PendingAppend",
    "ReplicatedBatches",
    "SegmentBuilder",
    "SegmentFile",
    "UnifiedLog",
    "create_log",
    "load_log",
    "read_boot_id",
]
