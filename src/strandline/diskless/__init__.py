"""Diskless topics: batches of many partitions in shared WAL objects, ordered by the control plane.

Here: the format of WAL objects, the writer (gather, rotate, upload, commit), the reader with its cache, retention and
the cleaning of files, fsck. Not here: local segments, tiered segments, which topic is diskless.
"""
