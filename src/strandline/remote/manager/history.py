"""Whether a remote segment belongs to the history of the leader's log. Pure.

After an unclean election two leaders may have copied different records with the same offsets. Leader epochs alone
decide: a segment belongs to the log if its epochs are epochs of the log, each with the same start and end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from strandline.model import NO_OFFSET, LeaderEpoch, Offset
from strandline.remote.values import RemoteLogSegmentMetadata

EpochEntry = tuple[LeaderEpoch, Offset]
Lookup = Callable[[LeaderEpoch, Offset], RemoteLogSegmentMetadata | None]


def with_records(epochs: Sequence[EpochEntry]) -> list[EpochEntry]:
    """The epochs with records: one that begins where the next one begins has none."""
    last = len(epochs) - 1
    return [entry for at, entry in enumerate(epochs) if at == last or entry[1] < epochs[at + 1][1]]


class LogHistory:
    """The history of a log: its leader epochs, ascending, and its end."""

    def __init__(self, epochs: Sequence[EpochEntry], log_end: Offset) -> None:
        self._epochs, self._log_end = with_records(epochs), log_end
        self._index = {epoch: position for position, (epoch, _) in enumerate(self._epochs)}

    def __contains__(self, segment: RemoteLogSegmentMetadata) -> bool:
        """Whether the records of a segment are records of the log.

        The log may begin inside the segment: records before the log start do not count.
        """
        leader = self._epochs
        own = with_records(tuple(segment.segment_leader_epochs.items()))
        if not leader or not own or segment.end_offset >= self._log_end:
            return False
        if not leader[0][0] <= own[-1][0] <= leader[-1][0]:
            return False
        own = [entry for entry in own if entry[0] >= leader[0][0]]
        if any(epoch not in self._index for epoch, _ in own):
            return False
        first = self._index[own[0][0]]
        if first > 0 and own[0][1] < leader[first][1]:
            return False
        # The same epochs in a row, with no other epoch between them, each from the same start offset.
        if own[1:] != leader[first + 1 : first + len(own)]:
            return False
        after = first + len(own)
        return after == len(leader) or segment.end_offset < leader[after][1]


def highest_copied_offset(
    epochs: Sequence[EpochEntry], log_end: Offset, highest_for_epoch: Callable[[LeaderEpoch], Offset | None]
) -> Offset:
    """The last offset of the log that is in remote storage, -1 if none is.

    Searches from the newest epoch back. Another leader may have copied more of an epoch than this log has of it.
    """
    end = log_end
    for epoch, start in reversed(epochs):
        copied = highest_for_epoch(epoch)
        if copied is not None:
            return min(copied, end - 1)
        end = start
    return NO_OFFSET


def boundaries(segment: RemoteLogSegmentMetadata) -> Iterator[EpochEntry]:
    """The first and the last offset of each epoch that has records in a segment."""
    epochs = with_records(tuple(segment.segment_leader_epochs.items()))
    ends = [*(start - 1 for _, start in epochs[1:]), segment.end_offset]
    for (epoch, start), end in zip(epochs, ends, strict=True):
        yield epoch, start
        yield epoch, end


def is_readable(segment: RemoteLogSegmentMetadata, lookup: Lookup) -> bool:
    """Whether lookups find the records of a segment in COPY_SEGMENT_FINISHED, in it or in another segment.

    They do not if another segment took its place and was deleted later: lookups do not return to the first.
    """
    return all(lookup(epoch, offset) is not None for epoch, offset in boundaries(segment))


def covers(wide: RemoteLogSegmentMetadata, narrow: RemoteLogSegmentMetadata) -> bool:
    """Whether every record of `narrow` is also in `wide`. Both belong to the same log."""
    if wide.start_offset > narrow.start_offset or wide.end_offset < narrow.end_offset:
        return False
    return narrow.segment_leader_epochs.keys() <= wide.segment_leader_epochs.keys()
