"""Where remote segments are kept: implementations of `RemoteStorageManager`.

`objects` is the built-in storage, which keeps segments as objects (`names`, `settings`); it is loaded by the name in
`remote.log.storage.manager.class.name` (`remote.plugins`), so importing this package does not load it. `deadline` wraps
any storage with deadlines and counters. Not here: which segments are copied or deleted, and when.
"""

from strandline.remote.storage.deadline import (
    DeadlineStorage,
    RemoteStorageStatus,
    StorageDeadlines,
    StorageOperationStatus,
)
from strandline.remote.storage.names import partition_directory, segment_name
from strandline.remote.storage.settings import ObjectSettings, parse_object_settings, rsm_place

__all__ = [
    "DeadlineStorage",
    "ObjectSettings",
    "RemoteStorageStatus",
    "StorageDeadlines",
    "StorageOperationStatus",
    "parse_object_settings",
    "partition_directory",
    "rsm_place",
    "segment_name",
]
