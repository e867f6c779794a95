"""Diskless topics: batches of many partitions in shared WAL objects, ordered by the control plane.

Here: the format of WAL objects (`wal`), the `writer` (gather, rotate, upload, commit), the `reader` with its cache,
background work (`upkeep`), `fsck`. Not here: local segments, tiered segments, which topic is diskless. Importing the
package loads none of its modules: a broker without diskless topics needs `values` only.
"""
