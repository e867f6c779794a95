"""Tiered storage (KIP-405): closed segments of classic topics and converted ones of diskless topics.

Here: the two ports of the KIP (`ports`, `plugins`), storages for segments (`storage`), remote log metadata in a topic
(`topic_based`), the work that copies, expires and deletes segments (`manager`), remote indexes (`indexes`), the reader
(`reader`), and the comparison of all of it (`fsck`). Not here: which tier answers a read (`hybrid`), the partitions of
`__remote_log_metadata` as replicas (`replication`), requests (`server`).
"""
