"""What `isolation=read_committed` leaves out: batches of transactions that were aborted."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.model import Offset
from strandline.records import ControlType, iter_headers, read_marker


def first_transactional(data: bytes) -> tuple[int, Offset | None]:
    """Position and first offset of the first batch of a transaction; None if there is none.

    A segment alone does not tell which transactions were aborted: their end may be in a later one.
    """
    for position, header in iter_headers(data):
        if header.is_transactional:
            return position, header.base_offset
    return len(data), None


def without_aborted(data: bytes, aborted: Iterable[tuple[int, Offset]]) -> bytes:
    """The batches that readers of committed records get, by the aborted transactions that a broker has listed.

    A transaction is listed by its producer and its first offset, and ends with the next abort marker of the producer.
    """
    coming = sorted(aborted, key=lambda entry: entry[1], reverse=True)
    if not coming:
        return data
    open_now: set[int] = set()
    kept: list[bytes] = []
    for position, header in iter_headers(data):
        while coming and coming[-1][1] <= header.last_offset:
            open_now.add(coming.pop()[0])
        batch = data[position : position + header.size]
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and marker.type is ControlType.ABORT:
                open_now.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_now:
            continue
        kept.append(batch)
    return b"".join(kept)
