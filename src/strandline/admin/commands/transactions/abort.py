"""`strandline transactions abort`: ends the transaction of a transactional id, or one that hangs in a partition.

The first is asked of the coordinator, in the name of a new producer with the same transactional id: the old one is
fenced, and its transaction is aborted everywhere. The second writes an abort marker to the one partition, past all
coordinators, which is right only if none of them will ever do it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from threading import Event
from typing import Annotated, Final

import typer

from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, confirm, print_json, print_line
from strandline.admin.commands.transactions.asking import (
    TransactionDetails,
    describe_producers,
    describe_transaction,
    leader_of,
)
from strandline.admin.commands.transactions.hanging import find_holders, hanging_among
from strandline.client import Cluster, CommandFailed, check, sentences
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

ONGOING: Final = "Ongoing"
_ATTEMPTS: Final = 150
_PAUSE_S: Final = 0.2
_NOTHING_ABORTED: Final = "Nothing was aborted."
_HINTS: Final = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer has a newer epoch by now, which ended the transaction",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "The partition has a marker of a newer coordinator epoch; look "
    "at strandline transactions describe-producers",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "The leader has just changed. Try again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortMarker:
    """What an abort marker says, and where it goes."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def abort_transaction(
    transactional_id: Annotated[
        str | None,
        typer.Argument(metavar="TRANSACTIONAL_ID", help="Fence its producer and abort its transaction."),
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Where one hangs.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Where.")] = None,
    start_offset: Annotated[
        int | None, typer.Option("--start-offset", min=0, metavar="OFFSET", help="Where the hanging one begins.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option("--producer-id", metavar="ID", help="Instead of --start-offset, with both epochs.")
    ] = None,
    producer_epoch: Annotated[
        int | None, typer.Option("--producer-epoch", metavar="N", help="Of the producer.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None, typer.Option("--coordinator-epoch", metavar="N", help="As describe-producers shows it.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if a coordinator may still end it: its partitions then disagree.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Abort the transaction of a transactional id, or one that hangs in a partition (see find-hanging). It asks first.

    Examples: strandline transactions abort payments-1; strandline transactions abort -t orders -p 0 --start-offset 4711
    """
    by_offset = start_offset is not None
    by_producer = (producer_id, producer_epoch, coordinator_epoch)
    if transactional_id is not None:
        if topic is not None or partition is not None or by_offset or by_producer != (None, None, None):
            raise CommandFailed(
                "Give either a transactional id, or --topic and --partition of a transaction that hangs."
            )
        _abort_by_id(transactional_id, bootstrap, yes=yes, as_json=as_json)
        return
    if topic is None or partition is None:
        raise CommandFailed("Give a transactional id, or --topic and --partition of a transaction that hangs.")
    with sentences(), Cluster(bootstrap) as cluster:
        if start_offset is not None and by_producer == (None, None, None):
            marker = _marker_at(cluster, topic, partition, start_offset, force=force)
        elif not by_offset and producer_id is not None and producer_epoch is not None and coordinator_epoch is not None:
            marker = AbortMarker(
                topic=topic,
                partition=partition,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=_usable_epoch(coordinator_epoch),
            )
        else:
            raise CommandFailed(
                "Give either --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch."
            )
        confirm(
            f"Abort the transaction of producer id {marker.producer_id} in {topic}-{partition}?",
            yes=yes,
            otherwise=_NOTHING_ABORTED,
        )
        _write(cluster, marker)
    if as_json:
        print_json({"aborted": True, **asdict(marker)})
    else:
        print_line(f"The transaction of producer id {marker.producer_id} in {topic}-{partition} was aborted.")


def _abort_by_id(transactional_id: str, bootstrap: str, *, yes: bool, as_json: bool) -> None:
    with sentences(), Cluster(bootstrap) as cluster:
        found = describe_transaction(cluster, transactional_id)
        if found is None:
            raise CommandFailed(f"There is no transactional id {transactional_id}.")
        if found.state != ONGOING:
            raise CommandFailed(
                f"Transactional id {transactional_id} has no transaction to abort: it is {found.state}."
            )
        confirm(
            f"Abort the transaction of {transactional_id} and fence its producer?",
            yes=yes,
            otherwise=_NOTHING_ABORTED,
        )
        fence(cluster, found)
    if as_json:
        row = asdict(found)
        print_json({"aborted": True} | {name: row[name] for name in ("transactional_id", "producer_id", "partitions")})
    else:
        print_line(f"The transaction of {transactional_id} was aborted in {len(found.partitions)} partitions.")


def fence(cluster: Cluster, found: TransactionDetails) -> None:
    """Abort the transaction of a transactional id, and shut its producer out. Raises CommandFailed."""
    _, coordinator = cluster.transaction_coordinator(found.transactional_id)
    request = InitProducerIdRequest(transactional_id=found.transactional_id, transaction_timeout_ms=found.timeout_ms)
    for _ in range(_ATTEMPTS):
        answer = coordinator.request(ApiKey.INIT_PRODUCER_ID, request)
        if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            break
        Event().wait(_PAUSE_S)  # the markers of the abort are being written
    check(answer.error_code, None, f"The transaction of {found.transactional_id} was not aborted")


def _marker_at(cluster: Cluster, topic: str, partition: int, start_offset: int, *, force: bool) -> AbortMarker:
    """The marker for the transaction that begins at the offset. Raises CommandFailed if a coordinator may end it."""
    producers = describe_producers(cluster, {(topic, partition): leader_of(cluster, topic, partition)})
    found = next((row for row in producers if row.start_offset == start_offset), None)
    if found is None:
        raise CommandFailed(f"No open transaction of {topic}-{partition} begins at offset {start_offset}.")
    if not force:
        holders = find_holders(cluster, {found.producer_id})
        if not hanging_among([found], holders):
            holder = holders[found.producer_id]
            raise CommandFailed(
                f"The transaction does not hang: it is of transactional id {holder.transactional_id}, which is "
                f"{holder.state}, and its coordinator will end it. To end it now: strandline transactions abort "
                f"{holder.transactional_id}."
            )
    return AbortMarker(
        topic=topic,
        partition=partition,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        coordinator_epoch=_usable_epoch(found.coordinator_epoch),
    )


def _usable_epoch(coordinator_epoch: int) -> int:
    """0 if no coordinator has ended a transaction of the producer yet (-1): no coordinator has a lower epoch."""
    return max(coordinator_epoch, 0)


def _write(cluster: Cluster, marker: AbortMarker) -> None:
    written = WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=marker.topic, partition_indexes=[marker.partition])],
        coordinator_epoch=marker.coordinator_epoch,
    )
    leader = cluster.broker(leader_of(cluster, marker.topic, marker.partition))
    answer = leader.request(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[written]))
    code = answer.markers[0].topics[0].partitions[0].error_code
    check(code, _HINTS.get(code), f"The transaction in {marker.topic}-{marker.partition} was not aborted")
