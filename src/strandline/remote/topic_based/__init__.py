"""The description of remote segments in the topic `__remote_log_metadata`, as in Kafka.

Here: its records byte for byte, which partition describes whom, the cache that the records build, the snapshot of it
on disk, and the manager that writes to the topic and reads it. Not here: the partitions of the topic (`MetadataTopic`
is a port, implemented in `replication`), what is copied or deleted when (`strandline.remote.manager`).
"""
