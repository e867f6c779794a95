"""Transactions in single requests: what is allowed, what is refused and how, and that a refusal changes nothing."""

from __future__ import annotations

import itertools

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker import Broker
from tests.clients.transactions import transactional_broker_of_tier
from tests.waiting import wait_until
from tests.wirelevel.raw import RawConnection, batch, connected, create_topic, end_offset, produce
from tests.wirelevel.transactional import (
    GROUP_COORDINATOR,
    RawTransactionalProducer,
    end_of,
    fetch_offset,
    last_stable_offset,
    open_producers,
    read_values,
    wait_for_coordinator,
)

E = ErrorCode
MOST_MS = 900_000
KINDS = pytest.mark.parametrize("is_new", [False, True], ids=["version-1", "version-2"])

broker = transactional_broker_of_tier

_numbers = itertools.count(1)


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"transactions-{next(_numbers)}"
    with connected(broker.bootstrap) as connection:
        create_topic(connection, name, partitions=3)
    return name


def delete_topic(connection: RawConnection, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=20_000)
    answer = connection.call(ApiKey.DELETE_TOPICS, 5, request)
    assert [one.error_code for one in answer.responses] == [E.NONE]
    wait_until(lambda: end_offset(connection, name)[0] == E.UNKNOWN_TOPIC_OR_PARTITION, what=f"{name} to be gone")


def new_producer(client: Client, *, is_new: bool = False, timeout_ms: int = 60_000) -> RawTransactionalProducer:
    name = f"id-{next(_numbers)}"
    return RawTransactionalProducer(client, name, is_new=is_new, timeout_ms=timeout_ms).initialised()


def begin(producer: RawTransactionalProducer, topic: str, *values: bytes, partition: int = 0) -> None:
    """Write into a partition, which is added first if the producer is an old one."""
    if not producer.is_new:
        assert wait_added(producer, (topic, partition))
    wait_written(producer, topic, *values, partition=partition)


def wait_added(producer: RawTransactionalProducer, place: tuple[str, int]) -> bool:
    def is_added() -> bool:
        (code,) = producer.add(place)
        assert code in (E.NONE, E.CONCURRENT_TRANSACTIONS), code
        return code is E.NONE

    return wait_until(is_added, what="a partition to be added")


def wait_written(producer: RawTransactionalProducer, topic: str, *values: bytes, partition: int = 0) -> None:
    def is_written() -> bool:
        code = producer.write(topic, *values, partition=partition)
        assert code in (E.NONE, E.CONCURRENT_TRANSACTIONS, E.NOT_ENOUGH_REPLICAS), code
        return code is E.NONE

    wait_until(is_written, what="a batch to be taken")


def wait_state(producer: RawTransactionalProducer, state: str) -> None:
    wait_until(lambda: producer.state() == state, what=f"{producer.transactional_id} to be {state}")


# What is seen


@KINDS
def test_a_transaction_is_seen_when_it_is_committed(client: Client, topic: str, is_new: bool) -> None:
    producer = new_producer(client, is_new=is_new)
    begin(producer, topic, b"1", b"2")
    assert (last_stable_offset(client, topic), end_of(client, topic)) == (0, 2)
    assert read_values(client, topic) == []
    assert read_values(client, topic, isolation=0) == [b"1", b"2"]
    assert open_producers(client, topic) == [producer.producer_id]
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert (last_stable_offset(client, topic), end_of(client, topic)) == (3, 3)
    assert read_values(client, topic) == [b"1", b"2"]
    assert open_producers(client, topic) == []


@KINDS
def test_a_transaction_is_never_seen_when_it_is_aborted(client: Client, topic: str, is_new: bool) -> None:
    producer = new_producer(client, is_new=is_new)
    begin(producer, topic, b"1", b"2")
    assert producer.end(commit=False) is E.NONE
    wait_state(producer, "CompleteAbort")
    begin(producer, topic, b"3")
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert read_values(client, topic) == [b"3"]
    assert read_values(client, topic, isolation=0) == [b"1", b"2", b"3"]
    assert last_stable_offset(client, topic) == end_of(client, topic) == 5


@KINDS
def test_an_open_transaction_holds_back_what_follows_it(client: Client, topic: str, is_new: bool) -> None:
    slow, quick = new_producer(client, is_new=is_new), new_producer(client, is_new=not is_new)
    begin(slow, topic, b"slow")
    begin(quick, topic, b"quick")
    assert quick.end(commit=True) is E.NONE
    wait_state(quick, "CompleteCommit")
    assert read_values(client, topic) == []
    assert last_stable_offset(client, topic) == 0
    assert slow.end(commit=False) is E.NONE
    wait_state(slow, "CompleteAbort")
    assert read_values(client, topic) == [b"quick"]


# Partitions that were never added


def test_a_batch_for_a_partition_that_was_never_added_is_refused(client: Client, topic: str) -> None:
    producer = new_producer(client)
    assert producer.add((topic, 0)) == [E.NONE]
    for version, code in ((9, E.INVALID_TXN_STATE), (10, E.INVALID_TXN_STATE), (11, E.TRANSACTION_ABORTABLE)):
        assert producer.write(topic, b"x", partition=1, version=version) is code, version
    assert (last_stable_offset(client, topic, 1), end_of(client, topic, 1)) == (0, 0)
    assert open_producers(client, topic, 1) == []
    assert producer.write(topic, b"x", partition=0) is E.NONE
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert producer.write(topic, b"late", version=9) is E.INVALID_TXN_STATE
    assert last_stable_offset(client, topic) == end_of(client, topic) == 2


def test_a_transactional_batch_without_an_id_is_refused(client: Client, topic: str) -> None:
    producer = new_producer(client)
    assert producer.add((topic, 0)) == [E.NONE]
    assert producer.write(topic, b"x", transactional_id=None, version=9) is E.INVALID_TXN_STATE
    assert producer.write(topic, b"x", transactional_id="nobody-has-it", version=9) is E.INVALID_PRODUCER_ID_MAPPING
    assert end_of(client, topic) == 0


def test_the_batch_of_a_fenced_producer_is_refused(client: Client, topic: str) -> None:
    old = new_producer(client)
    begin(old, topic, b"old")
    new = RawTransactionalProducer(client, old.transactional_id).initialised()
    assert new.producer_id == old.producer_id
    assert new.epoch > old.epoch
    assert old.write(topic, b"zombie", version=9) is E.INVALID_PRODUCER_EPOCH
    assert old.add((topic, 1)) == [E.PRODUCER_FENCED]
    assert old.add((topic, 1), version=1) == [E.INVALID_PRODUCER_EPOCH]
    assert old.end(commit=True) is E.PRODUCER_FENCED
    assert old.end(commit=True, version=1) is E.INVALID_PRODUCER_EPOCH
    assert old.add_group("g") is E.PRODUCER_FENCED
    assert read_values(client, topic) == []
    assert last_stable_offset(client, topic) == end_of(client, topic) == 2


def test_a_plain_batch_within_a_transaction_is_refused(broker: Broker, client: Client, topic: str) -> None:
    producer = new_producer(client)
    begin(producer, topic, b"x")
    plain = batch(b"y", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=1)
    with connected(broker.bootstrap) as connection:
        assert produce(connection, topic, plain)[0] == E.INVALID_TXN_STATE
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")


def test_nothing_slips_in_behind_a_plain_batch(broker: Broker, client: Client, topic: str) -> None:
    """A transactional batch that nobody admitted would hang, and so would a control batch end what it may not."""
    how = {"producer_id": 7_777_777, "producer_epoch": 0}
    plain, hidden = batch(b"plain"), batch(b"hidden", base_sequence=0, is_transactional=True, **how)
    control = batch(b"\0\0\0\0\0\0", is_control=True, is_transactional=True, **how)
    with connected(broker.bootstrap) as connection:
        for records in (plain + hidden, control, plain + control):
            assert produce(connection, topic, records)[0] in (E.INVALID_RECORD, E.INVALID_TXN_STATE)
    assert end_of(client, topic) == last_stable_offset(client, topic) == 0
    assert open_producers(client, topic) == []


def test_idempotent_producers_need_no_coordinator(broker: Broker, client: Client, topic: str) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
    answer = client.request(ApiKey.INIT_PRODUCER_ID, request)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    with connected(broker.bootstrap) as connection:
        for sequence in (0, 1):
            records = batch(b"x", producer_id=answer.producer_id, producer_epoch=0, base_sequence=sequence)
            assert produce(connection, topic, records)[:2] == (0, sequence)
            assert produce(connection, topic, records)[:2] == (0, sequence), "a duplicate"
    assert last_stable_offset(client, topic) == 2


# InitProducerId


@pytest.mark.parametrize("timeout_ms", [0, -1, MOST_MS + 1])
def test_a_timeout_beyond_the_limit_is_refused(client: Client, timeout_ms: int) -> None:
    producer = RawTransactionalProducer(client, f"id-{next(_numbers)}", timeout_ms=timeout_ms)
    producer.find()
    assert producer.init() is E.INVALID_TRANSACTION_TIMEOUT
    assert producer.state() == "TRANSACTIONAL_ID_NOT_FOUND"


def test_the_longest_timeout_is_taken(client: Client) -> None:
    assert new_producer(client, timeout_ms=MOST_MS).epoch == 0


def test_an_id_has_to_be_one(client: Client) -> None:
    producer = new_producer(client)
    assert RawTransactionalProducer(client, "").init() is E.INVALID_REQUEST
    half = RawTransactionalProducer(client, producer.transactional_id, producer_id=producer.producer_id)
    assert half.init(goes_on=True) is E.INVALID_REQUEST
    half = RawTransactionalProducer(client, producer.transactional_id, epoch=0)
    assert half.init(goes_on=True) is E.INVALID_REQUEST


def test_a_producer_that_goes_on_gets_the_next_epoch_and_a_repetition_the_same(client: Client) -> None:
    producer = new_producer(client)
    first = (producer.producer_id, producer.epoch)
    assert producer.init(goes_on=True) is E.NONE
    assert (producer.producer_id, producer.epoch) == (first[0], first[1] + 1)
    again = RawTransactionalProducer(client, producer.transactional_id, producer_id=first[0], epoch=first[1])
    assert again.init(goes_on=True) is E.NONE
    assert again.epoch == producer.epoch
    assert producer.init() is E.NONE
    assert again.init(goes_on=True) is E.PRODUCER_FENCED
    assert again.init(goes_on=True, version=3) is E.INVALID_PRODUCER_EPOCH
    stranger = RawTransactionalProducer(client, producer.transactional_id, producer_id=987_654, epoch=0)
    assert stranger.init(goes_on=True) is E.PRODUCER_FENCED


def test_initialising_aborts_what_is_open(client: Client, topic: str) -> None:
    crashed = new_producer(client)
    begin(crashed, topic, b"lost")
    again = RawTransactionalProducer(client, crashed.transactional_id)
    assert again.init() in (E.NONE, E.CONCURRENT_TRANSACTIONS)
    again.initialised()
    assert again.producer_id == crashed.producer_id
    assert read_values(client, topic) == []
    assert last_stable_offset(client, topic) == end_of(client, topic) == 2
    begin(again, topic, b"kept")
    assert again.end(commit=True) is E.NONE
    wait_state(again, "CompleteCommit")
    assert read_values(client, topic) == [b"kept"]


@KINDS
@pytest.mark.parametrize("is_timed_out", [False, True], ids=["open", "timed-out"])
def test_a_producer_goes_on_with_its_own_id_and_epoch_after_its_transaction_was_aborted_for_it(
    client: Client, topic: str, is_new: bool, is_timed_out: bool
) -> None:
    """KIP-360: what franz-go does after an EndTxn that was not answered."""
    producer = new_producer(client, is_new=is_new, timeout_ms=300 if is_timed_out else 60_000)
    begin(producer, topic, b"lost")
    before = (producer.producer_id, producer.epoch)
    if is_timed_out:
        wait_state(producer, "CompleteAbort")
        producer.timeout_ms = 60_000
    producer.initialised(goes_on=True)
    assert (producer.producer_id, producer.epoch) == (before[0], before[1] + 1)
    again = RawTransactionalProducer(client, producer.transactional_id, producer_id=before[0], epoch=before[1])
    assert again.init(goes_on=True) is E.NONE, "the answer was lost"
    assert again.epoch == producer.epoch
    begin(producer, topic, b"kept")
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert read_values(client, topic) == [b"kept"]


# AddPartitionsToTxn and AddOffsetsToTxn


def test_all_partitions_of_a_request_are_added_or_none(client: Client, topic: str) -> None:
    producer = new_producer(client)
    codes = producer.add((topic, 0), (topic, 7), ("nowhere", 0))
    assert codes == [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.state() == "Empty"
    assert producer.verify((topic, 0)) == [E.TRANSACTION_ABORTABLE]


def test_somebody_else_cannot_add_partitions(client: Client, topic: str) -> None:
    producer = new_producer(client)
    other = RawTransactionalProducer(client, producer.transactional_id, producer_id=987_654, epoch=0)
    assert other.add((topic, 0)) == [E.INVALID_PRODUCER_ID_MAPPING]
    unknown = RawTransactionalProducer(client, "nobody-has-it", producer_id=producer.producer_id, epoch=0)
    assert unknown.add((topic, 0)) == [E.INVALID_PRODUCER_ID_MAPPING]
    assert unknown.end(commit=True) is E.INVALID_PRODUCER_ID_MAPPING
    assert unknown.add_group("g") is E.INVALID_PRODUCER_ID_MAPPING
    ahead = RawTransactionalProducer(
        client, producer.transactional_id, producer_id=producer.producer_id, epoch=producer.epoch + 1
    )
    assert ahead.add((topic, 0)) == [E.PRODUCER_FENCED]
    assert producer.state() == "Empty"


def test_a_broker_asks_whether_a_partition_was_added(client: Client, topic: str) -> None:
    producer = new_producer(client)
    assert producer.add((topic, 0)) == [E.NONE]
    assert producer.verify((topic, 0), (topic, 1)) == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert producer.verify((topic, 0), (topic, 1), version=4) == [E.NONE, E.TRANSACTION_ABORTABLE]
    old = RawTransactionalProducer(client, producer.transactional_id, producer_id=producer.producer_id, epoch=-1)
    assert old.verify((topic, 0)) == [E.PRODUCER_FENCED]
    assert producer.verify((topic, 1), verify_only=False) == [E.NONE]
    assert producer.verify((topic, 1)) == [E.NONE]


# EndTxn


def test_ends_of_old_producers(client: Client, topic: str) -> None:
    producer = new_producer(client)
    assert producer.end(commit=True) is E.INVALID_TXN_STATE
    assert producer.end(commit=False) is E.INVALID_TXN_STATE
    begin(producer, topic, b"x")
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert producer.end(commit=True) is E.NONE, "a repetition"
    assert producer.end(commit=False) is E.INVALID_TXN_STATE
    begin(producer, topic, b"y")
    assert producer.end(commit=False) is E.NONE
    wait_state(producer, "CompleteAbort")
    assert producer.end(commit=False) is E.NONE, "a repetition"
    assert producer.end(commit=True) is E.INVALID_TXN_STATE
    assert end_of(client, topic) == 4, "repetitions write no markers"
    assert read_values(client, topic) == [b"x"]


def test_every_end_of_a_new_producer_makes_an_epoch(client: Client, topic: str) -> None:
    producer = new_producer(client, is_new=True)
    for number in range(5):
        assert producer.epoch == number
        begin(producer, topic, b"%d" % number)
        assert producer.end(commit=number % 2 == 0) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert read_values(client, topic) == [b"0", b"2", b"4"]


@pytest.mark.parametrize("commit", [True, False])
def test_a_new_producer_that_did_not_hear_of_its_end_repeats_it(client: Client, topic: str, commit: bool) -> None:
    producer = new_producer(client, is_new=True)
    begin(producer, topic, b"x")
    assert producer.end(commit=commit, keeps_epoch=True) is E.NONE
    wait_state(producer, "CompleteCommit" if commit else "CompleteAbort")
    assert producer.end(commit=not commit, keeps_epoch=True) is E.INVALID_TXN_STATE
    assert producer.write(topic, b"late") is E.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=commit) is E.NONE
    assert producer.epoch == 1
    assert end_of(client, topic) == 2, "a repetition writes no marker"
    begin(producer, topic, b"y")
    assert producer.end(commit=True) is E.NONE


def test_a_new_producer_may_abort_a_transaction_without_partitions(client: Client, topic: str) -> None:
    producer = new_producer(client, is_new=True)
    assert producer.end(commit=True) is E.INVALID_TXN_STATE
    for epoch in (1, 2):
        assert wait_until(lambda: producer.end(commit=False) is E.NONE)
        assert producer.epoch == epoch
        wait_state(producer, "CompleteAbort")
    begin(producer, topic, b"x")
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert producer.end(commit=True) is E.INVALID_TXN_STATE
    assert read_values(client, topic) == [b"x"]


def test_a_late_batch_does_not_get_into_a_topic_that_was_created_again(
    broker: Broker, client: Client, topic: str
) -> None:
    """Its transaction has ended without a marker in the topic, which did not exist then."""
    producer = new_producer(client, is_new=True)
    assert producer.write(topic, b"x") is E.NONE
    late = RawTransactionalProducer(
        client, producer.transactional_id, is_new=True, producer_id=producer.producer_id, epoch=producer.epoch
    )
    with connected(broker.bootstrap) as connection:
        delete_topic(connection, topic)
        assert producer.end(commit=True) is E.NONE
        wait_state(producer, "CompleteCommit")
        create_topic(connection, topic)
    assert late.write(topic, b"late") is E.INVALID_PRODUCER_EPOCH
    assert last_stable_offset(client, topic) == end_of(client, topic) == 0
    assert open_producers(client, topic) == []


def test_produce_by_topic_id_adds_the_partition(client: Client, topic: str) -> None:
    producer = new_producer(client, is_new=True)
    assert producer.write(topic, b"x", version=13) is E.NONE
    assert producer.verify((topic, 0)) == [E.NONE]
    assert producer.end(commit=True) is E.NONE


# By time


@KINDS
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    client: Client, topic: str, is_new: bool
) -> None:
    producer = new_producer(client, is_new=is_new, timeout_ms=300)
    begin(producer, topic, b"x")
    wait_state(producer, "CompleteAbort")
    assert producer.write(topic, b"y") is E.INVALID_PRODUCER_EPOCH
    assert producer.add((topic, 1)) == [E.PRODUCER_FENCED]
    assert read_values(client, topic) == []
    assert last_stable_offset(client, topic) == end_of(client, topic) == 2
    epoch = producer.epoch
    assert RawTransactionalProducer(client, producer.transactional_id).initialised().epoch == epoch + 2


def test_the_end_of_an_old_producer_that_was_timed_out_is_refused(client: Client, topic: str) -> None:
    producer = new_producer(client, timeout_ms=300)
    begin(producer, topic, b"x")
    wait_state(producer, "CompleteAbort")
    assert producer.end(commit=True) is E.PRODUCER_FENCED
    assert producer.end(commit=False) is E.PRODUCER_FENCED


# Offsets


def wait_group(client: Client, group: str) -> str:
    wait_for_coordinator(client, group, kind=GROUP_COORDINATOR)
    return group


@KINDS
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_when_the_transaction_is_committed(
    client: Client, topic: str, is_new: bool, commit: bool
) -> None:
    group = wait_group(client, f"group-{next(_numbers)}")
    producer = new_producer(client, is_new=is_new)
    if not is_new:
        assert producer.add_group(group) is E.NONE
    assert producer.commit_offset(group, topic, 17) is E.NONE
    assert fetch_offset(client, group, topic) == (E.NONE, -1)
    assert fetch_offset(client, group, topic, stable=True)[0] is E.UNSTABLE_OFFSET_COMMIT
    assert fetch_offset(client, group, topic, 1, stable=True) == (E.NONE, -1), "another partition"
    assert producer.end(commit=commit) is E.NONE
    wait_state(producer, "CompleteCommit" if commit else "CompleteAbort")
    expected = (E.NONE, 17 if commit else -1)
    assert fetch_offset(client, group, topic) == fetch_offset(client, group, topic, stable=True) == expected


def test_offsets_of_a_group_that_was_never_added_are_refused(client: Client, topic: str) -> None:
    group = wait_group(client, f"group-{next(_numbers)}")
    producer = new_producer(client)
    assert producer.add((topic, 0)) == [E.NONE]
    assert producer.commit_offset(group, topic, 17, version=3) is E.INVALID_TXN_STATE
    assert producer.commit_offset(group, topic, 17, version=4) is E.TRANSACTION_ABORTABLE
    assert fetch_offset(client, group, topic, stable=True) == (E.NONE, -1)


def test_offsets_of_strangers_are_refused(client: Client, topic: str) -> None:
    group = wait_group(client, f"group-{next(_numbers)}")
    producer = new_producer(client)
    assert producer.add_group(group) is E.NONE
    assert producer.commit_offset(group, topic, 1, generation=3, member="m") is E.ILLEGAL_GENERATION
    assert producer.commit_offset(group, "nowhere", 1) is E.UNKNOWN_TOPIC_OR_PARTITION
    zombie = RawTransactionalProducer(
        client, producer.transactional_id, producer_id=producer.producer_id, epoch=producer.epoch
    )
    RawTransactionalProducer(client, producer.transactional_id).initialised()
    assert zombie.commit_offset(group, topic, 1) is E.INVALID_PRODUCER_EPOCH
    assert fetch_offset(client, group, topic, stable=True) == (E.NONE, -1)


def test_a_plain_commit_after_the_transactional_one_wins(client: Client, topic: str) -> None:
    group = wait_group(client, f"group-{next(_numbers)}")
    producer = new_producer(client)
    assert producer.add_group(group) is E.NONE
    assert producer.commit_offset(group, topic, 17) is E.NONE
    one = OffsetCommitRequestPartition(partition_index=0, committed_offset=20)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[one])],
    )
    answer = client.request(ApiKey.OFFSET_COMMIT, request, version=8)
    assert answer.topics[0].partitions[0].error_code == E.NONE
    assert producer.end(commit=True) is E.NONE
    wait_state(producer, "CompleteCommit")
    assert fetch_offset(client, group, topic, stable=True) == (E.NONE, 20)
