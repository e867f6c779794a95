"""Records of `__remote_log_metadata`, byte for byte as Apache Kafka writes them.

`serde` reads and writes whole records, `packing` the part of them that the cache keeps, `fields` their field types.
"""

from strandline.remote.topic_based.records.serde import RemoteLogMetadata, deserialize, partition_of, serialize

__all__ = ["RemoteLogMetadata", "deserialize", "partition_of", "serialize"]
