"""Reading what is in remote storage, as fast as it can be brought here, and without harm to anybody else.

`reader` is what others use. It finds the segment (`lineage`), opens it (`segments`), finds the batch (`locating`), has
its bytes brought (`chunks` into memory, or `files` where the storage has files), reads ahead for consumers that catch
up (`readahead`), and adds the aborted transactions (`aborted`). `by_time` searches for timestamps. Not here: what is
copied or deleted, and who asks (requests, polls).
"""

from strandline.remote.reader.limits import RemoteReaderLimits
from strandline.remote.reader.log import ReadableLog
from strandline.remote.reader.reader import RemoteLogReader
from strandline.remote.reader.status import RemoteReaderStatus, TopicReads
from strandline.remote.reader.values import RemoteRead

__all__ = [
    "ReadableLog",
    "RemoteLogReader",
    "RemoteRead",
    "RemoteReaderLimits",
    "RemoteReaderStatus",
    "TopicReads",
]
