"""Remote log metadata in the topic `__remote_log_metadata`, as in Kafka.

`manager` writes to the topic and answers queries, `consumer` reads one metadata partition into the `cache`. `records`
are the bytes of the topic, `snapshots` the cache on disk, `partitioner` chooses the metadata partition. Not here: the
partitions of the topic (`topic` is a port, implemented in `replication`), what is copied or deleted when
(`strandline.remote.manager`).
"""
