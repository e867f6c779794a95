"""Remote segments that are being read: their indexes and their bytes.

`opened` keeps segments open while consumers read them. The bytes of a segment (`source`) come from objects through a
cache in `memory`, or from `files` that this machine can open.
"""

from strandline.remote.reader.segments.files import FileReads
from strandline.remote.reader.segments.memory import ChunkCache
from strandline.remote.reader.segments.opened import OpenSegment, OpenSegments
from strandline.remote.reader.segments.source import Loading, SegmentBytes

__all__ = ["ChunkCache", "FileReads", "Loading", "OpenSegment", "OpenSegments", "SegmentBytes"]
