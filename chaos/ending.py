"""After the last fault: wait until every transaction has ended, then read everything, with and without isolation."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from tests.clients.two_brokers import BrokerCluster
from tests.waiting import wait_until
from tests.wirelevel.asking import ask_for_offset, ask_to_fetch
from tests.wirelevel.transactional import end_of, last_stable_offset, unfinished

from chaos.copiers import GROUP
from chaos.history import COMMITTED, UNCOMMITTED, Batch, Content, Trouble
from chaos.readers import ask_group
from chaos.reading import consumer_settings
from chaos.stage import PARTITIONS, Stage
from chaos.switching import SWITCHED, wait_switched
from chaos.values import Place, copy_topic, list_topic
from strandline.records import BatchHeader, iter_headers, read_records
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode

SETTLE_SECONDS = 120.0
READ_SECONDS = 300.0
_EARLIEST = -2


def all_places(stage: Stage) -> list[Place]:
    """Every partition: lists and copies."""
    topics = [name(tier) for tier in stage.tiers for name in (list_topic, copy_topic)]
    return [(topic, number) for topic in topics for number in range(PARTITIONS)]


def conclude(stage: Stage, cluster: BrokerCluster) -> None:
    """Write down the end of the history. What cannot be read is a violation: the judge sees that it is missing."""
    clients = {node: Client.connect("127.0.0.1", one.port, timeout_s=60.0) for node, one in cluster.brokers.items()}
    try:
        _settle(stage, clients)
        if SWITCHED in stage.tiers:
            wait_switched(stage, cluster)
        for place in all_places(stage):
            for node_id, client in clients.items():
                content = _read_raw(client, f"broker {node_id}", *place)
                if content is not None:
                    stage.recorder.write(content)
    finally:
        for client in clients.values():
            client.close()
    _read_committed(stage)
    _read_group(stage)


def _settle(stage: Stage, clients: dict[int, Client]) -> None:
    def is_settled() -> bool:
        if any(unfinished(client) for client in clients.values()):
            return False
        return all(_is_stable(client, *place) for place in all_places(stage) for client in clients.values())

    try:
        wait_until(is_settled, within=SETTLE_SECONDS, step=0.5, what="the end of all transactions")
    except AssertionError as error:
        left = [one for client in clients.values() for one in unfinished(client)]
        stuck = [place for place in all_places(stage) for at in clients.values() if not _is_stable(at, *place)]
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
                records += [(one.offset, (one.value or b"").decode()) for one in found]
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


def _read_committed(stage: Stage) -> None:
    """What a real client reads."""
    consumer = Consumer({**consumer_settings(stage, "the-end"), "enable.partition.eof": True})
    records: dict[Place, list[tuple[int, str]]] = {place: [] for place in all_places(stage)}
    ends: dict[Place, int] = {}

    def is_read() -> bool:
        for message in consumer.consume(1000, 1.0):
            place, offset = (message.topic() or "", message.partition() or 0), message.offset()
            error = message.error()
            if error is None and offset is not None:
                records[place].append((offset, (message.value() or b"").decode()))
            elif error is not None and error.name() == "_PARTITION_EOF" and offset is not None:
                ends[place] = offset
        return len(ends) == len(records)

    try:
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in records])
        wait_until(is_read, within=READ_SECONDS, step=0.0, what=f"the ends of {records.keys() - ends.keys()}")
    except AssertionError as error:
        stage.recorder.write(Trouble(at=stage.now, what="not everything could be read", text=str(error)))
    finally:
        consumer.close()
    for (topic, number), end in ends.items():
        stage.recorder.write(
            Content(
                source="consumer",
                isolation=COMMITTED,
                topic=topic,
                partition=number,
                start=0,
                end=end,
                records=records[topic, number],
            )
        )


def _read_group(stage: Stage) -> None:
    """Where the copiers are, from the group's offsets. Its coordinator may be loading: it is asked again."""
    consumer = Consumer({**consumer_settings(stage, "the-end"), "group.id": GROUP})
    try:
        wait_until(lambda: ask_group(stage, consumer, stage.places), within=READ_SECONDS, what=f"offsets of {GROUP}")
    finally:
        consumer.close()
