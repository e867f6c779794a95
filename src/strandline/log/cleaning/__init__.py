"""Compaction of local logs: deciding what to clean, rewriting it in a process of its own, swapping it in.

Here: the cleaner, its choice of logs, its map of keys, the rules for each batch. Not here: retention by time and
size, and how a log puts a cleaned segment in the place of others (`Segments.replace`).
"""

from strandline.log.cleaning.cleaner import LogCleaner, LogCleanerStatus
from strandline.log.cleaning.passes import PassReport

__all__ = ["LogCleaner", "LogCleanerStatus", "PassReport"]
