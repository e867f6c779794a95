"""Appends to a coordinator's log in a coroutine."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.coordinators.runtime import CoordinatorLog, CoordinatorRecord, TransactionEnd, WriteResult, wait_result
from strandline.model import LeaderEpoch, Offset, ProducerAndEpoch


async def appended(
    log: CoordinatorLog,
    partition: int,
    records: Sequence[CoordinatorRecord],
    *,
    leader_epoch: LeaderEpoch,
    producer: ProducerAndEpoch | None = None,
) -> Offset:
    """The offset of the first record. Raises what the log refuses, or answers."""
    return _offset(
        await wait_result(
            lambda done: log.append(partition, records, done, leader_epoch=leader_epoch, producer=producer)
        )
    )


async def ended(log: CoordinatorLog, partition: int, end: TransactionEnd, *, leader_epoch: LeaderEpoch) -> Offset:
    """The same for a marker."""
    return _offset(await wait_result(lambda done: log.append_marker(partition, end, done, leader_epoch=leader_epoch)))


def _offset(result: WriteResult) -> Offset:
    if result.error is not None:
        raise result.error
    return result.base_offset
