"""Tiered storage (KIP-405): finished segments of classic topics in remote storage.

Here: the storage (`RemoteStorageManager`), the description of what is there (`RemoteLogMetadataManager`), the work that
copies, expires and deletes (`RemoteLogManager`), the cache of remote indexes and the reader. Not here: which tier
answers a read (`hybrid`), the partition of `__remote_log_metadata` as a replica (`replication`), requests.
"""
