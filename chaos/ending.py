"""After the last fault: wait until every transaction has ended, then read everything, with and without isolation."""

from __future__ import annotations

import threading

from tests.waiting import wait_until
from tests.wirelevel.asking import ask_for_offset, ask_to_fetch
from tests.wirelevel.transactional import end_of, last_stable_offset, unfinished

from chaos.field import START_SECONDS, Field
from chaos.history import UNCOMMITTED, Batch, Content, Trouble
from chaos.processes import Keeper
from chaos.stage import Stage
from chaos.stored import read_replica
from chaos.switching import SWITCHED, wait_switched
from chaos.values import REPLICATED, copy_topic, list_topic, value_in
from strandline.records import BatchHeader, iter_headers, read_records
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode

SETTLE_SECONDS = 120.0
DRAIN_SECONDS = 120.0
"""How long the share group may take for what is left."""
CLIENT_SECONDS = 60.0
_TRIES = 3
"""How many processes may try to read everything, if each before has hung."""
_EARLIEST = -2
_LOGS = "logs"
"""Where a broker keeps its logs, in its directory."""
_STEP_SECONDS = 0.2


def conclude(stage: Stage, there: Field, *, has_share_group: bool) -> None:
    """Write down the end of the history, and stop the brokers.

    What cannot be read is a violation: the judge sees that it is missing.
    """
    clients = {node: there.cluster.connect(node) for node in there.nodes}
    try:
        _settle(stage, clients)
        if SWITCHED in stage.tiers:
            wait_switched(stage, there.cluster)
        for place in stage.all_places:
            for node_id, client in clients.items():
                content = _read_raw(client, f"broker {node_id}", *place)
                if content is not None:
                    stage.recorder.write(content)
    finally:
        for client in clients.values():
            client.close()
    Keeper(stage=stage, work="end", name="end", generations=range(_TRIES)).keep()
    if has_share_group:
        _drain(stage)
    if REPLICATED in stage.tiers:
        there.wait_healthy()
        _read_replicas(stage, there)


def _drain(stage: Stage) -> None:
    """Have one more member of the share group take what is left. If it is not given all of it, the judge sees that."""
    keeper = Keeper(stage=stage, work="share-member", name="last-share-member")
    thread = stage.start(keeper.name, keeper.keep)
    recorder = stage.recorder
    deadline = stage.now + DRAIN_SECONDS
    pause = threading.Event()
    while stage.now < deadline and not all(recorder.is_shared(place) for place in stage.places):
        pause.wait(_STEP_SECONDS)
    keeper.stop.set()
    thread.join(CLIENT_SECONDS)
    keeper.abandon.set()
    thread.join()


def _read_replicas(stage: Stage, there: Field) -> None:
    """The files of all replicas, after a clean stop of every broker."""
    assigned = there.assigned()
    for broker in there.cluster.brokers.values():
        broker.stop(within=START_SECONDS)
    for topic, partition in stage.all_places:
        if topic in (list_topic(REPLICATED), copy_topic(REPLICATED)):
            for node_id in assigned[topic, partition]:
                directory = there.cluster.brokers[node_id].data_dir / _LOGS
                found = read_replica(directory, node_id, (topic, partition), assigned[topic, partition])
                if found is not None:
                    stage.recorder.write(found)


def _settle(stage: Stage, clients: dict[int, Client]) -> None:
    def is_settled() -> bool:
        if any(unfinished(client) for client in clients.values()):
            return False
        return all(_is_stable(client, *place) for place in stage.all_places for client in clients.values())

    try:
        wait_until(is_settled, within=SETTLE_SECONDS, step=0.5, what="the end of all transactions")
    except AssertionError as error:
        left = [one for client in clients.values() for one in unfinished(client)]
        stuck = [place for place in stage.all_places for at in clients.values() if not _is_stable(at, *place)]
        text = f"{error}; transactions {left}, readers are held back in {stuck}"
        stage.recorder.write(Trouble(at=stage.now, what="transactions did not end", text=text))


def _is_stable(client: Client, topic: str, partition: int) -> bool:
    return last_stable_offset(client, topic, partition) == end_of(client, topic, partition)


def _read_raw(client: Client, source: str, topic: str, partition: int) -> Content | None:
    """All batches of a partition with their markers. None if this broker does not serve it: another one does."""
    start = ask_for_offset(client, topic, _EARLIEST, partition=partition)
    if start.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return None
    records: list[tuple[int, str]] = []
    markers: list[int] = []
    batches: list[Batch] = []
    offset = start.offset
    while offset < (end := end_of(client, topic, partition)):
        row = ask_to_fetch(client, topic, offset, partition=partition)
        if row.error_code != ErrorCode.NONE or not row.records:
            return None
        for position, header in iter_headers(row.records):
            found = read_records(row.records[position : position + header.size])
            if header.is_control:
                markers += [one.offset for one in found]
            else:
                records += [(one.offset, value_in(one.value or b"")) for one in found]
                if header.producer_id >= 0:
                    batches.append(_batch(header, len(found)))
            offset = header.next_offset
    return Content(
        source=source,
        isolation=UNCOMMITTED,
        topic=topic,
        partition=partition,
        start=start.offset,
        end=end,
        records=records,
        markers=markers,
        batches=batches,
    )


def _batch(header: BatchHeader, count: int) -> Batch:
    return Batch(
        offset=header.base_offset,
        count=count,
        producer_id=header.producer_id,
        epoch=header.producer_epoch,
        sequence=header.base_sequence,
    )
