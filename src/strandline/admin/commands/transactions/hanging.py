"""Which open transactions hang: the partition has one open, and no coordinator will write its marker.

A coordinator writes markers to the partitions that it has on the list of a transactional id. A transaction of a
producer id that no coordinator knows, or of a partition that is not on the list, hangs: `read_committed` consumers
wait before it forever. Old clients can leave one behind, if a write of theirs arrives after the end of its transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from strandline.admin.commands.transactions.asking import (
    PartitionProducer,
    TransactionDetails,
    TransactionFilters,
    describe_transaction,
    list_transactions,
)
from strandline.client import Cluster, CommandFailed, partition_leaders

STATE_TOPIC: Final = "__transaction_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """An open transaction of a partition, and why no coordinator will end it."""

    producer: PartitionProducer
    why: str


def long_open(producers: Collection[PartitionProducer], *, now_ms: int, longest_ms: int) -> list[PartitionProducer]:
    """Producers whose open transaction got its last record longer ago than any transaction may last."""
    return [row for row in producers if row.start_offset is not None and now_ms - row.last_timestamp > longest_ms]


def hanging_among(
    candidates: Collection[PartitionProducer], holders: Mapping[int, TransactionDetails]
) -> list[HangingTransaction]:
    """Those that no coordinator will end. `holders` has the transactional id of each producer id that has one."""
    found = []
    for row in candidates:
        holder = holders.get(row.producer_id)
        if holder is None:
            why = f"no coordinator knows producer id {row.producer_id}"
        elif (row.topic, row.partition) not in holder.partitions:
            why = f"the coordinator of {holder.transactional_id} ({holder.state}) has nothing to end in this partition"
        else:
            continue
        found.append(HangingTransaction(producer=row, why=why))
    return found


def find_holders(cluster: Cluster, producer_ids: Collection[int]) -> dict[int, TransactionDetails]:
    """The transactional ids that coordinators have for these producer ids.

    Raises CommandFailed if a coordinator cannot be asked: otherwise its transactions would seem to hang.
    """
    if not producer_ids:
        return {}
    for (topic, partition), leader in partition_leaders(cluster, [STATE_TOPIC]).items():
        if leader < 0:
            raise CommandFailed(
                f"Partition {partition} of {topic} has no leader, so the coordinator of some transactional ids cannot "
                "be asked. Start the broker that has it first."
            )
    listed = list_transactions(cluster, TransactionFilters(producer_ids=tuple(sorted(producer_ids))))
    holders = {}
    for row in listed:
        details = describe_transaction(cluster, row.transactional_id)
        if details is not None and row.producer_id in producer_ids:
            holders[row.producer_id] = details
    return holders
