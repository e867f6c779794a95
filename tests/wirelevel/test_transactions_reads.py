"""What readers get from a log with transactions: waiting consumers, times, deletions, and what operators ask for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.list_transactions import ListTransactionsRequest
from strandline.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker import Broker
from tests.clients.transactions import transactional_broker_of_tier
from tests.moments import T0
from tests.waiting import wait_until
from tests.wirelevel.asking import FETCH_VERSION, ask_for_offset, ask_to_delete, ask_to_fetch, fetch_request, offsets_in
from tests.wirelevel.raw import RawConnection, connected, create_topic
from tests.wirelevel.transactional import (
    READ_COMMITTED,
    RawTransactionalProducer,
    end_of,
    last_stable_offset,
    open_producers,
    read_values,
)

E = ErrorCode
LONG_MS = 60_000
KINDS = pytest.mark.parametrize("is_new", [False, True], ids=["version-1", "version-2"])

broker = transactional_broker_of_tier

_numbers = itertools.count(1)


@pytest.fixture
def consumer(broker: Broker) -> Iterator[RawConnection]:
    with connected(broker.bootstrap) as opened:
        yield opened


@pytest.fixture
def topic(consumer: RawConnection) -> str:
    name = f"reads-{next(_numbers)}"
    create_topic(consumer, name)
    return name


def begun(client: Client, topic: str, *values: bytes, is_new: bool = True) -> RawTransactionalProducer:
    producer = RawTransactionalProducer(client, f"reads-{next(_numbers)}", is_new=is_new).initialised()
    if not is_new:
        assert producer.add((topic, 0)) == [E.NONE]
    assert producer.write(topic, *values) is E.NONE
    return producer


def end(producer: RawTransactionalProducer, *, commit: bool) -> None:
    assert producer.end(commit=commit) is E.NONE
    wait_until(lambda: producer.state().startswith("Complete"))


@KINDS
@pytest.mark.parametrize("commit", [True, False])
def test_a_waiting_consumer_hears_of_the_end(
    client: Client, consumer: RawConnection, topic: str, is_new: bool, commit: bool
) -> None:
    """Long before its time is over: the marker makes records readable that were there before."""
    producer = begun(client, topic, b"x", is_new=is_new)
    consumer.send(ApiKey.FETCH, FETCH_VERSION, fetch_request(topic, 0, wait_ms=LONG_MS, isolation=READ_COMMITTED))
    end(producer, commit=commit)
    _, answer = consumer.receive(ApiKey.FETCH, FETCH_VERSION)
    row = answer.responses[0].partitions[0]
    assert (row.last_stable_offset, row.high_watermark) == (2, 2)
    assert offsets_in(row) == [0, 1]
    aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions]
    assert aborted == ([] if commit else [(producer.producer_id, 0)])


def test_only_aborted_transactions_of_what_is_read_are_named(client: Client, topic: str) -> None:
    first = begun(client, topic, b"0")
    end(first, commit=False)
    second = begun(client, topic, b"2")
    end(second, commit=True)
    third = begun(client, topic, b"4")
    end(third, commit=False)
    row = ask_to_fetch(client, topic, 2, isolation=READ_COMMITTED)
    assert [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()] == [(third.producer_id, 4)]
    assert not ask_to_fetch(client, topic, 2).aborted_transactions


def test_times_of_open_transactions_are_not_found(client: Client, topic: str) -> None:
    producer = begun(client, topic, b"0", b"1")
    assert ask_for_offset(client, topic, T0 + 1).offset == 1
    assert ask_for_offset(client, topic, T0 + 1, isolation=READ_COMMITTED).offset == -1
    end(producer, commit=True)
    assert ask_for_offset(client, topic, T0 + 1, isolation=READ_COMMITTED).offset == 1


def test_records_of_an_open_transaction_are_deleted(client: Client, topic: str) -> None:
    """The transaction stays open; what is stable starts with the log."""
    producer = begun(client, topic, b"0", b"1")
    assert ask_to_delete(client, topic, -1).offset == 2
    assert last_stable_offset(client, topic) == 2
    row = ask_to_fetch(client, topic, 2, isolation=READ_COMMITTED)
    assert (row.error_code, row.last_stable_offset, offsets_in(row)) == (0, 2, [])
    assert producer.write(topic, b"2") is E.NONE
    assert offsets_in(ask_to_fetch(client, topic, 2, isolation=READ_COMMITTED)) == []
    end(producer, commit=True)
    assert last_stable_offset(client, topic) == end_of(client, topic) == 4
    assert offsets_in(ask_to_fetch(client, topic, 2, isolation=READ_COMMITTED)) == [2, 3]


# Operators


def test_a_hanging_transaction_is_ended_by_a_marker(client: Client, topic: str) -> None:
    """As `kafka-transactions abort` does: with what DescribeProducers says. The producer cannot go on with it."""
    producer = begun(client, topic, b"x", is_new=False)
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 7])],
        coordinator_epoch=-1,
    )
    answer = client.request(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]), version=1)
    (result,) = answer.markers[0].topics
    assert [(one.partition_index, one.error_code) for one in result.partitions] == [
        (0, E.NONE),
        (7, E.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert open_producers(client, topic) == []
    assert last_stable_offset(client, topic) == end_of(client, topic) == 2
    assert read_values(client, topic) == []
    end(producer, commit=True)
    assert read_values(client, topic) == [], "what was aborted stays aborted"


def test_markers_of_earlier_epochs_are_refused(client: Client, topic: str) -> None:
    producer = begun(client, topic, b"x")
    for epoch, coordinator_epoch, version, code in (
        (producer.epoch - 1, 0, 1, E.INVALID_PRODUCER_EPOCH),
        (producer.epoch, 0, 2, E.INVALID_PRODUCER_EPOCH),
    ):
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=2 if version == 2 else 0,
        )
        answer = client.request(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]), version=version)
        assert answer.markers[0].topics[0].partitions[0].error_code == code
    assert open_producers(client, topic) == [producer.producer_id]
    end(producer, commit=True)
    assert read_values(client, topic) == [b"x"]


def test_transactions_are_listed_and_described(client: Client, topic: str) -> None:
    opened, ended = begun(client, topic, b"x"), begun(client, topic, b"y")
    end(ended, commit=True)

    def listed(**how: object) -> set[tuple[str, str]]:
        answer = client.request(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(**how))  # type: ignore[arg-type]
        assert answer.error_code == E.NONE
        mine = {opened.transactional_id, ended.transactional_id}
        found = answer.transaction_states
        return {(one.transactional_id, one.transaction_state) for one in found if one.transactional_id in mine}

    both = {(opened.transactional_id, "Ongoing"), (ended.transactional_id, "CompleteCommit")}
    assert listed() == both
    assert listed(state_filters=["Ongoing"]) == {(opened.transactional_id, "Ongoing")}
    assert listed(producer_id_filters=[ended.producer_id]) == {(ended.transactional_id, "CompleteCommit")}
    assert listed(state_filters=["Nonsense"]) == set()
    assert listed(duration_filter=3_600_000) == set()
    request = DescribeTransactionsRequest(transactional_ids=[opened.transactional_id, "nobody-has-it"])
    found, missing = client.request(ApiKey.DESCRIBE_TRANSACTIONS, request).transaction_states
    assert (found.error_code, found.transaction_state, found.producer_id) == (E.NONE, "Ongoing", opened.producer_id)
    assert [(one.topic, one.partitions) for one in found.topics] == [(topic, [0])]
    assert found.transaction_start_time_ms > 0
    assert missing.error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    end(opened, commit=False)
