"""Snapshots of the metadata cache on disk, so that a broker that restarts reads only new records of the topic.

`format` is the content of a snapshot file, `files` where and in which order the files are written.
"""

from strandline.remote.topic_based.snapshots.files import SnapshotFiles

__all__ = ["SnapshotFiles"]
