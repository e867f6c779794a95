"""Transactions are listed, described, found hanging and aborted, by a broker that answers as the tests say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import (
    describe_producers,
    describe_transactions,
    init_producer_id,
    list_transactions,
    metadata,
    write_txn_markers,
)
from tests.admin.commands.conftest import Command
from tests.admin.commands.scripted import NODE_ID, Answer, scripted_broker

# Long before any clock of a machine that runs the tests.
LONG_AGO_MS = 1_600_000_000_000
FAR_AHEAD_MS = 9_000_000_000_000


@dataclass
class ScriptedId:
    """A transactional id of the scripted coordinator."""

    producer_id: int
    state: str = "Ongoing"
    partitions: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass
class TransactionStory:
    """What the scripted broker knows: transactional ids, and open transactions by partition."""

    ids: dict[str, ScriptedId] = field(default_factory=dict)
    producers: dict[tuple[str, int], list[Any]] = field(default_factory=dict)
    marker_code: int = 0
    init_codes: list[int] = field(default_factory=list)

    def answers(self) -> dict[ApiKey, Answer]:
        return {
            ApiKey.LIST_TRANSACTIONS: self._list,
            ApiKey.DESCRIBE_TRANSACTIONS: self._describe,
            ApiKey.DESCRIBE_PRODUCERS: self._producers,
            ApiKey.WRITE_TXN_MARKERS: self._markers,
            ApiKey.INIT_PRODUCER_ID: self._init,
        }

    def _list(self, request: Any) -> Any:
        unknown = [state for state in request.state_filters if state not in ("Ongoing", "Empty")]
        rows = [
            list_transactions.TransactionState(
                transactional_id=name, producer_id=known.producer_id, transaction_state=known.state
            )
            for name, known in self.ids.items()
            if not request.producer_id_filters or known.producer_id in request.producer_id_filters
            if not request.state_filters or known.state in request.state_filters
        ]
        return list_transactions.ListTransactionsResponse(transaction_states=rows, unknown_state_filters=unknown)

    def _describe(self, request: Any) -> Any:
        (name,) = request.transactional_ids
        if name not in self.ids:
            code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            row = describe_transactions.TransactionState(transactional_id=name, error_code=code)
        else:
            known = self.ids[name]
            row = describe_transactions.TransactionState(
                transactional_id=name,
                transaction_state=known.state,
                transaction_timeout_ms=60_000,
                transaction_start_time_ms=-1 if known.state == "Empty" else LONG_AGO_MS,
                producer_id=known.producer_id,
                producer_epoch=3,
                topics=[
                    describe_transactions.TopicData(topic=topic, partitions=list(numbers))
                    for topic, numbers in known.partitions.items()
                ],
            )
        return describe_transactions.DescribeTransactionsResponse(transaction_states=[row])

    def _producers(self, request: Any) -> Any:
        return describe_producers.DescribeProducersResponse(
            topics=[
                describe_producers.TopicResponse(
                    name=topic.name,
                    partitions=[
                        describe_producers.PartitionResponse(
                            partition_index=number, active_producers=self.producers.get((topic.name, number), [])
                        )
                        for number in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _markers(self, request: Any) -> Any:
        (marker,) = request.markers
        (topic,) = marker.topics
        (number,) = topic.partition_indexes
        part = write_txn_markers.WritableTxnMarkerPartitionResult(partition_index=number, error_code=self.marker_code)
        result = write_txn_markers.WritableTxnMarkerTopicResult(name=topic.name, partitions=[part])
        return write_txn_markers.WriteTxnMarkersResponse(
            markers=[write_txn_markers.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[result])]
        )

    def _init(self, _: Any) -> Any:
        code = self.init_codes.pop(0) if self.init_codes else 0
        return init_producer_id.InitProducerIdResponse(error_code=code, producer_id=4, producer_epoch=9)


def _producer(producer_id: int, start: int, *, last_ms: int = LONG_AGO_MS, coordinator_epoch: int = 5) -> Any:
    return describe_producers.ProducerState(
        producer_id=producer_id,
        producer_epoch=2,
        last_sequence=8,
        last_timestamp=last_ms,
        coordinator_epoch=coordinator_epoch,
        current_txn_start_offset=start,
    )


@pytest.fixture
def story() -> TransactionStory:
    """Topic `tides`: 0 has a transaction that its coordinator holds, 1 two that hang, and 2 a young one and none."""
    return TransactionStory(
        ids={
            "held": ScriptedId(producer_id=1, partitions={"tides": [0, 2]}),
            "gone-on": ScriptedId(producer_id=2, partitions={"tides": [0]}),
            "idle": ScriptedId(producer_id=3, state="Empty"),
        },
        producers={
            ("tides", 0): [_producer(1, 40)],
            ("tides", 1): [_producer(2, 41), _producer(99, 42, coordinator_epoch=-1)],
            ("tides", 2): [_producer(98, 43, last_ms=FAR_AHEAD_MS), _producer(97, -1)],
        },
    )


TOPICS = {"tides": 3, "waves": 1, "__transaction_state": 2}


def test_transactional_ids_are_listed_with_filters(command: Command, story: TransactionStory) -> None:
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        words = ("transactions", "list", "-b", broker.bootstrap)
        rows = command(*words, "--json").json
        assert [row["transactional_id"] for row in rows] == ["gone-on", "held", "idle"]
        assert rows[1] == {"transactional_id": "held", "coordinator": NODE_ID, "producer_id": 1, "state": "Ongoing"}
        filtered = ("--state", "Ongoing", "--producer-id", "2", "--running-for", "5", "--id-pattern", "g.*")
        assert [row["transactional_id"] for row in command(*words, *filtered, "--json").json] == ["gone-on"]
        request = broker.requests(list_transactions.ListTransactionsRequest)[-1]
        assert (request.duration_filter, request.transactional_id_pattern) == (5, "g.*")
        assert "--state Sleeping is no state that broker 7 knows." in command(*words, "--state", "Sleeping").err
        assert "gone-on" in command(*words).out


@pytest.mark.parametrize(("option", "newest"), [(("--running-for", "5"), 0), (("--id-pattern", "x"), 1)])
def test_a_filter_that_a_broker_would_ignore_is_refused(
    command: Command, story: TransactionStory, option: tuple[str, str], newest: int
) -> None:
    with scripted_broker(story.answers(), newest={ApiKey.LIST_TRANSACTIONS: newest}) as broker:
        outcome = command("transactions", "list", *option, "-b", broker.bootstrap)
        assert broker.requests(list_transactions.ListTransactionsRequest) == []
    assert f"{option[0]} is not understood by broker 7" in outcome.err


def test_a_transactional_id_is_described(command: Command, story: TransactionStory) -> None:
    with scripted_broker(story.answers()) as broker:
        words = ("transactions", "describe", "-b", broker.bootstrap)
        row = command(*words, "held", "--json").json
        text = command(*words, "held").out
        idle = command(*words, "idle", "--json").json
        missing = command(*words, "nobody")
    assert row.pop("running_ms") > 0
    assert row == {
        "transactional_id": "held", "coordinator": NODE_ID, "state": "Ongoing", "producer_id": 1, "producer_epoch": 3,
        "timeout_ms": 60_000, "started_ms": LONG_AGO_MS, "partitions": [["tides", 0], ["tides", 2]],
    }  # fmt: skip
    assert "held  Ongoing, coordinator 7" in text
    assert "open since 2020-09-13 12:26:40.000 UTC" in text
    assert (idle["started_ms"], idle["running_ms"], idle["partitions"]) == (None, None, [])
    assert (missing.status, missing.err) == (1, "strandline: There is no transactional id nobody.\n")


@pytest.mark.parametrize("state", ["CompleteCommit", "CompleteAbort"])
def test_a_transaction_that_has_ended_is_not_open(command: Command, story: TransactionStory, state: str) -> None:
    """The coordinator still tells when it began, as in Kafka."""
    story.ids["ended"] = ScriptedId(producer_id=4, state=state)
    with scripted_broker(story.answers()) as broker:
        words = ("transactions", "describe", "-b", broker.bootstrap, "ended")
        row = command(*words, "--json").json
        text = command(*words).out
    assert (row["started_ms"], row["running_ms"]) == (None, None)
    assert "open since" not in text


def test_producers_of_a_partition(command: Command, story: TransactionStory) -> None:
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        words = ("transactions", "describe-producers", "-t", "tides", "-b", broker.bootstrap)
        rows = command(*words, "-p", "2", "--json").json
        assert "2020-09-13 12:26:40.000" in command(*words, "-p", "1", "--broker-id", "7").out
        assert "Partition 3 of topic tides does not exist." in command(*words, "-p", "3").err
    assert [row["start_offset"] for row in rows] == [43, None]
    assert list(rows[0]) == [
        "producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp", "start_offset",
    ]  # fmt: skip


def test_only_what_no_coordinator_will_end_hangs(command: Command, story: TransactionStory) -> None:
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        words = ("transactions", "find-hanging", "-b", broker.bootstrap)
        rows = command(*words, "--json").json
        text = command(*words, "-t", "tides", "-p", "1").out
        assert "There is no broker 8, or it does not run." in command(*words, "--broker-id", "8").err
        elsewhere = command(*words, "-t", "waves").out
        assert "Give --topic with --partition." in command(*words, "-p", "1").err
        assert "Topic nowhere does not exist." in command(*words, "-t", "nowhere").err
    assert [(row["topic"], row["partition"], row["start_offset"], row["why"]) for row in rows] == [
        ("tides", 1, 41, "the coordinator of gone-on (Ongoing) has nothing to end in this partition"),
        ("tides", 1, 42, "no coordinator knows producer id 99"),
    ]
    assert "no coordinator knows producer id 99" in text
    assert "No transaction hangs in 1 partitions." in elsewhere


def test_a_coordinator_that_cannot_be_asked_makes_nothing_hang(command: Command, story: TransactionStory) -> None:
    story.ids.clear()

    def leaderless(request: Any) -> Any:
        names = ["tides", "__transaction_state"] if request.topics is None else [row.name for row in request.topics]
        return metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=NODE_ID, host="127.0.0.1", port=broker.port)],
            topics=[
                metadata.MetadataResponseTopic(
                    name=name,
                    partitions=[
                        metadata.MetadataResponsePartition(
                            partition_index=0, leader_id=-1 if name == "__transaction_state" else NODE_ID
                        )
                    ],
                )
                for name in names
            ],
        )

    with scripted_broker({**story.answers(), ApiKey.METADATA: leaderless}) as broker:
        found = command("transactions", "find-hanging", "-t", "tides", "-b", broker.bootstrap)
        aborted = command(
            "transactions", "abort", "-t", "tides", "-p", "0", "--start-offset", "40", "-y", "-b", broker.bootstrap
        )
        assert broker.requests(write_txn_markers.WriteTxnMarkersRequest) == []
    for outcome in (found, aborted):
        assert outcome.status == 1
        assert "Partition 0 of __transaction_state has no leader" in outcome.err


@pytest.mark.parametrize(
    ("offset", "expected"), [("41", (2, 2, 5)), ("42", (99, 2, 0))], ids=["known producer", "never ended before"]
)
def test_a_hanging_transaction_is_aborted_by_its_offset(
    command: Command, story: TransactionStory, offset: str, expected: tuple[int, int, int]
) -> None:
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        words = ("transactions", "abort", "-t", "tides", "-p", "1", "--start-offset", offset, "-b", broker.bootstrap)
        done = command(*words, "--yes", "--json").json
        (request,) = broker.requests(write_txn_markers.WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == expected
    assert marker.transaction_result is False
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("tides", [1])]
    assert done == {
        "aborted": True, "topic": "tides", "partition": 1,
        "producer_id": expected[0], "producer_epoch": expected[1], "coordinator_epoch": expected[2],
    }  # fmt: skip


def test_a_transaction_that_a_coordinator_holds_is_not_aborted_by_a_marker_unless_forced(
    command: Command, story: TransactionStory
) -> None:
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        words = (
            "transactions",
            "abort",
            "-t",
            "tides",
            "-p",
            "0",
            "--start-offset",
            "40",
            "-b",
            broker.bootstrap,
            "-y",
        )
        refused = command(*words)
        assert broker.requests(write_txn_markers.WriteTxnMarkersRequest) == []
        assert command(*words, "--force").out == "The transaction of producer id 1 in tides-0 was aborted.\n"
        assert len(broker.requests(write_txn_markers.WriteTxnMarkersRequest)) == 1
    assert refused.status == 1
    assert "The transaction does not hang: it is of transactional id held, which is Ongoing" in refused.err


def test_by_producer_and_epochs_no_coordinator_is_asked(command: Command, story: TransactionStory) -> None:
    answers = {ApiKey.WRITE_TXN_MARKERS: story.answers()[ApiKey.WRITE_TXN_MARKERS]}
    with scripted_broker(answers, topics=TOPICS) as broker:
        epochs = ("--producer-epoch", "6", "--coordinator-epoch", "-1")
        words = ("transactions", "abort", "-t", "tides", "-p", "1", "--producer-id", "5", *epochs)
        assert command(*words, "--yes", "-b", broker.bootstrap).status == 0
        (marker,) = broker.requests(write_txn_markers.WriteTxnMarkersRequest)[0].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 6, 0)


def test_a_refused_marker_is_explained(command: Command, story: TransactionStory) -> None:
    story.marker_code = ErrorCode.INVALID_PRODUCER_EPOCH
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        words = (
            "transactions",
            "abort",
            "-t",
            "tides",
            "-p",
            "1",
            "--start-offset",
            "41",
            "-y",
            "-b",
            broker.bootstrap,
        )
        outcome = command(*words)
    assert outcome.status == 1
    assert outcome.err == (
        "strandline: The transaction in tides-1 was not aborted: The producer has a newer epoch by now, which ended "
        "the transaction (INVALID_PRODUCER_EPOCH).\n"
    )


def test_the_transaction_of_a_transactional_id_is_aborted_by_its_coordinator(
    command: Command, story: TransactionStory
) -> None:
    story.init_codes = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS]
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        outcome = command("transactions", "abort", "held", "--yes", "-b", broker.bootstrap)
        requests = broker.requests(init_producer_id.InitProducerIdRequest)
    assert outcome.out == "The transaction of held was aborted in 2 partitions.\n"
    assert [(row.transactional_id, row.transaction_timeout_ms, row.producer_id) for row in requests] == [
        ("held", 60_000, -1)
    ] * 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("idle",), "Transactional id idle has no transaction to abort: it is Empty."),
        (("nobody",), "There is no transactional id nobody."),
        ((), "Give a transactional id, or --topic and --partition"),
        (("held", "-t", "tides"), "Give either a transactional id, or --topic and --partition"),
        (("-t", "tides", "-p", "0"), "Give either --start-offset, or --producer-id"),
        (("-t", "tides", "-p", "0", "--producer-id", "1"), "Give either --start-offset, or --producer-id"),
        (("-t", "tides", "-p", "0", "--start-offset", "4", "--producer-id", "1"), "Give either --start-offset, or"),
        (("-t", "tides", "-p", "0", "--start-offset", "4"), "No open transaction of tides-0 begins at offset 4."),
        (("-t", "tides", "-p", "8", "--start-offset", "4"), "Partition 8 of topic tides does not exist."),
    ],
)
def test_an_abort_that_cannot_be_says_why(
    command: Command, story: TransactionStory, words: tuple[str, ...], sentence: str
) -> None:
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        outcome = command("transactions", "abort", *words, "--yes", "-b", broker.bootstrap)
        assert broker.requests(init_producer_id.InitProducerIdRequest) == []
        assert broker.requests(write_txn_markers.WriteTxnMarkersRequest) == []
    assert outcome.status == 1
    assert sentence in outcome.err


@pytest.mark.parametrize("words", [("held",), ("-t", "tides", "-p", "1", "--start-offset", "41")])
def test_an_abort_asks_first(
    command: Command, story: TransactionStory, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    with scripted_broker(story.answers(), topics=TOPICS) as broker:
        outcome = command("transactions", "abort", *words, "-b", broker.bootstrap)
        assert broker.requests(init_producer_id.InitProducerIdRequest) == []
        assert broker.requests(write_txn_markers.WriteTxnMarkersRequest) == []
    assert (outcome.status, outcome.err) == (1, "strandline: Nothing was aborted.\n")
