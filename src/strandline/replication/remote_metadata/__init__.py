"""The partitions of `__remote_log_metadata`, for the `MetadataTopic` port of `remote`.

A broker reads and writes partitions that it leads and partitions that other brokers lead (`leader`). Not
exported by `replication`: a broker without tiered storage does not load it.
"""

from strandline.replication.remote_metadata.batches import read_chunk
from strandline.replication.remote_metadata.topic import ReplicatedMetadataTopic

__all__ = ["ReplicatedMetadataTopic", "read_chunk"]
