"""A partition's local log."""

from __future__ import annotations

from strandline.log.reader import LogReader
from strandline.log.tiers import LogTiers
from strandline.log.writer import LogWriter


class UnifiedLog(LogWriter, LogReader, LogTiers):
    """One partition's log: append (`LogWriter`), read (`LogReader`), keep in shape (`LogKeeper`), share with
    remote storage (`LogTiers`).

    Open one with `loading.load_log` or make one with `loading.create_log`. Everything belongs to the event loop,
    except the blocking halves: `PendingAppend.write`, `FlushPlan.run`.
    """

    __slots__ = ()
