"""The writer: produced batches of many partitions go into shared WAL objects, and the control plane gives them offsets.

`writer` is what others use. Batches gather (`gathering`) until an object is worth its upload (`rotation`); objects are
uploaded in parallel (`uploads`) and committed in the order of their rotation (`commit_queue`, `committer`). `settling`
turns the answers of the control plane into offsets and results; `sequence_gaps` refuses batches that follow a lost one.
"""

from strandline.diskless.writer.rotation import WriterLimits
from strandline.diskless.writer.status import WriterStatus, WriterTotals
from strandline.diskless.writer.writer import WalWriter

__all__ = ["WalWriter", "WriterLimits", "WriterStatus", "WriterTotals"]
