"""Requests about a transaction that may not be: Kafka's code for each, and nothing has changed afterwards.

A transaction is open, with a record in a partition and offsets of a group; each bad request leaves it as it was, and it
is committed at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker import TIERS, Broker, broker_for_clients
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic
from tests.wirelevel.test_consumer_groups import RawGroup
from tests.wirelevel.transactional import (
    GROUP_COORDINATOR,
    RawTransactionalProducer,
    end_of,
    fetch_offset,
    last_stable_offset,
    read_values,
    wait_for_coordinator,
)

E = ErrorCode
BY_KIND = {False: "version-1", True: "version-2"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=sorted(TIERS))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {**TRANSACTION_SETTINGS, **TIERS[request.param], "group.consumer.assignment.interval.ms": "0"}
    with broker_for_clients(tmp_path_factory.mktemp("broker") / "data", settings) as running:
        yield running


class OpenTransaction:
    """What bad requests must not change."""

    def __init__(self, client: Client, topic: str, *, is_new: bool) -> None:
        self.client, self.topic, self.group = client, topic, f"group-{next(_numbers)}"
        wait_for_coordinator(client, self.group, kind=GROUP_COORDINATOR)
        self.producer = (
            RawTransactionalProducer(client, f"id-{next(_numbers)}", is_new=is_new).initialised().initialised()
        )
        if not is_new:
            assert self.producer.add((topic, 0)) == [E.NONE]
            assert self.producer.add_group(self.group) is E.NONE
        assert self.producer.write(topic, b"x") is E.NONE
        assert self.producer.commit_offset(self.group, topic, 5) is E.NONE

    def other(
        self, *, producer_id: int | None = None, epoch: int | None = None, timeout_ms: int = 60_000
    ) -> RawTransactionalProducer:
        """Somebody who is not quite the producer."""
        return replace(
            self.producer,
            producer_id=self.producer.producer_id if producer_id is None else producer_id,
            epoch=self.producer.epoch if epoch is None else epoch,
            timeout_ms=timeout_ms,
            sequences=dict(self.producer.sequences),
        )

    def unknown(self) -> RawTransactionalProducer:
        return replace(self.producer, transactional_id="nobody-has-it", sequences={})

    def picture(self) -> list[object]:
        """The transaction, each partition, and the offsets."""
        described = DescribeTransactionsRequest(transactional_ids=[self.producer.transactional_id])
        producers = DescribeProducersRequest(topics=[TopicRequest(name=self.topic, partition_indexes=[0, 1])])
        return [
            self.client.request(ApiKey.DESCRIBE_TRANSACTIONS, described).transaction_states,
            self.client.request(ApiKey.DESCRIBE_PRODUCERS, producers).topics,
            [(last_stable_offset(self.client, self.topic, at), end_of(self.client, self.topic, at)) for at in (0, 1)],
            fetch_offset(self.client, self.group, self.topic),
            fetch_offset(self.client, self.group, self.topic, stable=True)[0],
        ]

    def commit(self) -> None:
        assert self.producer.end(commit=True) is E.NONE
        wait_until(lambda: self.producer.state() == "CompleteCommit", what="the markers")
        assert read_values(self.client, self.topic) == [b"x"]
        assert (read_values(self.client, self.topic, 1), end_of(self.client, self.topic, 1)) == ([], 0)
        assert fetch_offset(self.client, self.group, self.topic, stable=True) == (E.NONE, 5)


Ask = Callable[[OpenTransaction], object]


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[Client]:
    with client_of(broker.bootstrap) as opened:
        yield opened


@pytest.fixture(scope="module", params=[False, True], ids=BY_KIND.get)
def opened(request: pytest.FixtureRequest, broker: Broker, client: Client) -> Iterator[OpenTransaction]:
    """One for all that is refused: whatever one of them changes, the next ones and the end notice."""
    topic = f"bad-{next(_numbers)}"
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic, partitions=2)
    found = OpenTransaction(client, topic, is_new=request.param)
    yield found
    found.commit()


def asked_by(
    name: str, who: Callable[[OpenTransaction], RawTransactionalProducer], **codes: E
) -> list[tuple[str, Ask, object]]:
    """Every request of somebody, and the code of each."""
    requests: dict[str, Callable[[OpenTransaction, RawTransactionalProducer], object]] = {
        "add": lambda at, one: one.add((at.topic, 1))[0],
        "add1": lambda at, one: one.add((at.topic, 1), version=1)[0],
        "verify": lambda at, one: one.verify((at.topic, 0))[0],
        "add_group": lambda at, one: one.add_group("other-group"),
        "write": lambda at, one: one.write(at.topic, b"bad", partition=1),
        "write9": lambda at, one: one.write(at.topic, b"bad", partition=1, version=9),
        "write_again": lambda at, one: one.write(at.topic, b"bad"),
        "offsets": lambda at, one: one.commit_offset(at.group, at.topic, 9),
        "offsets3": lambda at, one: one.commit_offset(at.group, at.topic, 9, version=3),
        "commit": lambda at, one: one.end(commit=True),
        "abort": lambda at, one: one.end(commit=False),
        "commit1": lambda at, one: one.end(commit=True, version=1),
    }
    return [
        (f"{name}: {what}", lambda at, ask=requests[what]: ask(at, who(at)), code)  # type: ignore[misc]
        for what, code in codes.items()
    ]


def before(at: OpenTransaction) -> RawTransactionalProducer:
    return at.other(epoch=at.producer.epoch - 1)


def ahead(at: OpenTransaction) -> RawTransactionalProducer:
    return at.other(epoch=at.producer.epoch + 1)


def stranger(at: OpenTransaction) -> RawTransactionalProducer:
    return at.other(producer_id=987_654)


FENCED = {
    "add": E.PRODUCER_FENCED,
    "add1": E.INVALID_PRODUCER_EPOCH,
    "verify": E.PRODUCER_FENCED,
    "add_group": E.PRODUCER_FENCED,
    "write": E.INVALID_PRODUCER_EPOCH,
    "write9": E.INVALID_PRODUCER_EPOCH,
    "write_again": E.INVALID_PRODUCER_EPOCH,
    "offsets": E.INVALID_PRODUCER_EPOCH,
    "offsets3": E.INVALID_PRODUCER_EPOCH,
    "commit": E.PRODUCER_FENCED,
    "abort": E.PRODUCER_FENCED,
    "commit1": E.INVALID_PRODUCER_EPOCH,
}
UNKNOWN = dict.fromkeys(FENCED, E.INVALID_PRODUCER_ID_MAPPING)
WHERE_IT_IS_OPEN = {"write_again", "offsets", "offsets3"}
"""Requests about a partition or group where the transaction of the producer is open: nobody is asked whose it is."""

REFUSED: list[tuple[str, Ask, object]] = [
    *asked_by("an epoch before", before, **FENCED),
    *asked_by("an epoch that nobody has yet", ahead, **FENCED),
    *asked_by("another producer id", stranger, **UNKNOWN),
    *asked_by(
        "an unknown id",
        OpenTransaction.unknown,
        **{what: UNKNOWN[what] for what in sorted(UNKNOWN.keys() - WHERE_IT_IS_OPEN)},
    ),
    (
        "a partition that does not exist",
        lambda at: at.producer.add((at.topic, 1), (at.topic, 7)),
        [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION],
    ),
    (
        "offsets of a topic that does not exist",
        lambda at: at.producer.commit_offset(at.group, "nowhere", 9),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    (
        "a generation of nobody",
        lambda at: at.producer.commit_offset(at.group, at.topic, 9, generation=3, member="m"),
        E.UNKNOWN_MEMBER_ID,
    ),
    ("no time at all", lambda at: at.other(timeout_ms=0).init(), E.INVALID_TRANSACTION_TIMEOUT),
    ("a time beyond the limit", lambda at: at.other(timeout_ms=900_001).init(), E.INVALID_TRANSACTION_TIMEOUT),
    ("half a producer", lambda at: at.other(epoch=-1).init(goes_on=True), E.INVALID_REQUEST),
    ("a stranger that goes on", lambda at: stranger(at).init(goes_on=True), E.PRODUCER_FENCED),
    (
        "a gap in the sequence",
        lambda at: at.producer.write(at.topic, b"bad", sequence=7),
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ),
]


@pytest.mark.parametrize(("ask", "code"), [pytest.param(ask, code, id=name) for name, ask, code in REFUSED])
def test_a_refusal_changes_nothing(opened: OpenTransaction, ask: Ask, code: object) -> None:
    before = opened.picture()
    assert ask(opened) == code
    assert opened.picture() == before


@pytest.fixture
def fresh(request: pytest.FixtureRequest, broker: Broker, client: Client) -> OpenTransaction:
    topic = f"bad-{next(_numbers)}"
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic, partitions=2)
    return OpenTransaction(client, topic, is_new=request.param)


OLD = pytest.mark.parametrize("fresh", [False], indirect=True, ids=BY_KIND.get)
NEW = pytest.mark.parametrize("fresh", [True], indirect=True, ids=BY_KIND.get)
BOTH = pytest.mark.parametrize("fresh", [False, True], indirect=True, ids=BY_KIND.get)


@OLD
def test_a_partition_that_was_never_added(fresh: OpenTransaction) -> None:
    before = fresh.picture()
    assert fresh.producer.write(fresh.topic, b"bad", partition=1) is E.TRANSACTION_ABORTABLE
    assert fresh.producer.write(fresh.topic, b"bad", partition=1, version=10) is E.INVALID_TXN_STATE
    assert fresh.picture() == before
    fresh.commit()


@NEW
def test_a_producer_with_a_new_epoch_for_each_transaction_begins_with_sequence_0(fresh: OpenTransaction) -> None:
    """The partition has been added by then, as in Kafka; it has no record."""
    producer = fresh.producer
    for _ in range(2):  # the second time nobody has to be asked
        assert producer.write(fresh.topic, b"bad", partition=1, sequence=3) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (last_stable_offset(fresh.client, fresh.topic, 1), end_of(fresh.client, fresh.topic, 1)) == (0, 0)
    assert producer.write(fresh.topic, b"good", partition=1, sequence=0) is E.NONE
    assert producer.write(fresh.topic, b"next", partition=1, sequence=1) is E.NONE
    assert producer.end(commit=True) is E.NONE
    wait_until(lambda: producer.state() == "CompleteCommit", what="the markers")
    assert read_values(fresh.client, fresh.topic, 1) == [b"good", b"next"]


@BOTH
def test_a_stale_member_epoch(broker: Broker, fresh: OpenTransaction) -> None:
    """Members of the consumer protocol: TxnOffsetCommit has no code of its own for them."""
    name, producer = f"members-{next(_numbers)}", fresh.producer
    with connected(broker.bootstrap) as connection:
        group = RawGroup(connection, name, fresh.topic)
        wait_until(lambda: group.join("a").error_code == E.NONE, within=30, what="the coordinator")
        first = group.join("a")
        group.join("b")  # the group has another epoch
        beaten = group.beat("a", first.member_epoch, topic_partitions=group.partitions(0, 1))
        if not producer.is_new:
            assert producer.add_group(name) is E.NONE
        before = fresh.picture()[1:4], fetch_offset(fresh.client, name, fresh.topic, stable=True)
        for member, epoch, code in (
            ("a", beaten.member_epoch + 5, E.ILLEGAL_GENERATION),
            ("nobody", beaten.member_epoch, E.UNKNOWN_MEMBER_ID),
        ):
            assert producer.commit_offset(name, fresh.topic, 9, generation=epoch, member=member) is code
        after = fresh.picture()[1:4], fetch_offset(fresh.client, name, fresh.topic, stable=True)
        assert after == before
        good = producer.commit_offset(name, fresh.topic, 9, generation=beaten.member_epoch, member="a")
        assert good is E.NONE
    fresh.commit()
    assert fetch_offset(fresh.client, name, fresh.topic, stable=True) == (E.NONE, 9)


@BOTH
def test_what_is_decided_is_not_decided_again(fresh: OpenTransaction) -> None:
    producer = fresh.producer
    assert producer.end(commit=True, keeps_epoch=True) is E.NONE
    wait_until(lambda: producer.state() == "CompleteCommit", what="the markers")
    before = fresh.picture()
    assert producer.end(commit=False, keeps_epoch=True) is E.INVALID_TXN_STATE
    assert producer.end(commit=True, keeps_epoch=True) is E.NONE, "a repetition"
    assert fresh.picture() == before
    assert fetch_offset(fresh.client, fresh.group, fresh.topic, stable=True) == (E.NONE, 5)


@BOTH
def test_offsets_where_the_transaction_of_the_producer_is_open(fresh: OpenTransaction, client: Client) -> None:
    """They are part of it, whatever transactional id they come with, as in Kafka. Elsewhere its coordinator is asked,
    who knows whose the producer is; and an epoch that is not that of the transaction is none of its own."""
    idle = RawTransactionalProducer(client, f"id-{next(_numbers)}").initialised()
    for stranger in (fresh.unknown(), replace(fresh.producer, transactional_id=idle.transactional_id)):
        for version in (3, 4, 5):
            assert stranger.commit_offset(fresh.group, fresh.topic, 6, partition=1, version=version) is E.NONE
            assert stranger.add_group(fresh.group, version=version - 2) is E.INVALID_PRODUCER_ID_MAPPING
        for epoch, code in ((-1, E.INVALID_PRODUCER_EPOCH), (1, E.INVALID_PRODUCER_ID_MAPPING)):
            other = replace(stranger, epoch=stranger.epoch + epoch)
            assert other.commit_offset(fresh.group, fresh.topic, 9, partition=1) is code
    assert fetch_offset(fresh.client, fresh.group, fresh.topic, 1, stable=True)[0] is E.UNSTABLE_OFFSET_COMMIT
    fresh.commit()
    assert fetch_offset(fresh.client, fresh.group, fresh.topic, 1, stable=True) == (E.NONE, 6)
    late = replace(fresh.unknown(), epoch=fresh.producer.epoch)
    assert late.commit_offset(fresh.group, fresh.topic, 9, partition=1) is E.INVALID_PRODUCER_ID_MAPPING


@BOTH
def test_an_epoch_of_another_producer_that_is_over(fresh: OpenTransaction, client: Client) -> None:
    """That it is over in the partition counts for more than whose id it is."""
    other = RawTransactionalProducer(client, f"id-{next(_numbers)}", is_new=fresh.producer.is_new).initialised()
    for opens in (True, False):
        if not other.is_new:
            assert other.add((fresh.topic, 0)) == [E.NONE]
            assert other.add_group(fresh.group) is E.NONE
        assert other.write(fresh.topic, b"theirs") is E.NONE
        assert other.commit_offset(fresh.group, fresh.topic, 7, partition=1) is E.NONE
        assert other.end(commit=False) is E.NONE
        wait_until(lambda: other.state() == "CompleteAbort", what="the markers")
        if opens and not other.is_new:
            other.initialised()
    before = fresh.picture()
    stranger = fresh.other(producer_id=other.producer_id, epoch=0)
    for version in (9, 11, 12):
        assert stranger.write(fresh.topic, b"bad", sequence=0, version=version) is E.INVALID_PRODUCER_EPOCH
    for version in (3, 4, 5):
        assert stranger.commit_offset(fresh.group, fresh.topic, 9, version=version) is E.INVALID_PRODUCER_EPOCH
    stranger.epoch = other.epoch + 1
    assert stranger.write(fresh.topic, b"bad", sequence=0) is E.INVALID_PRODUCER_ID_MAPPING
    assert stranger.commit_offset(fresh.group, fresh.topic, 9) is E.INVALID_PRODUCER_ID_MAPPING
    assert fresh.picture() == before
    fresh.commit()
