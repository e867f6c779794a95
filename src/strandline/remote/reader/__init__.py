"""Reads remote segments for consumers, within limits that protect the rest of the broker.

`reader` is the entry. It finds the segment of an offset (`finding`), opens it and loads its bytes (`segments`), finds
the batch (`locating`), reads ahead for consumers that catch up (`readahead`), and adds the aborted transactions
(`aborted`); `preparing` does this for one partition of a request. `by_time` searches for timestamps. `log` is the port
to the log that is read. Not here: copying and deleting (`remote.manager`), requests and polls (`server`).
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
