"""Diskless topics of one broker: the engine, open or not, following the metadata, partitions for request handlers.

Here: what joins `diskless` and `controlplane` with the metadata. Not here: how batches are written, ordered and read.
"""
