"""What a broker answers while a topic becomes diskless, and afterwards: one test for each row of the design's tables.

Tables: Produce by state, Fetch by state, errors of Fetch, errors of ListOffsets, brokers without diskless storage. Rows
about a broker that has no log of the partition are in `test_switch_error_rows_elsewhere`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.registry import encode_request
from tests.broker import BrokerProcess, running_broker
from tests.clients.switching import (
    HYBRID,
    ONE_AT_A_TIME,
    boundaries,
    hold_queue,
    is_waiting,
    status,
    switch,
    wait_state,
    wait_switched,
)
from tests.clients.tiering import QUICK, create
from tests.moments import T0
from tests.waiting import wait_until
from tests.wirelevel.asking import (
    Asked,
    ask_for_end_of_epoch,
    ask_for_offset,
    ask_to_delete,
    ask_to_fetch,
    ask_to_produce,
    client_of,
    offsets_in,
)
from tests.wirelevel.raw import PRODUCE_VERSION, batch, produce_request

EARLIEST, LATEST = -2, -1
TIERED = {"remote.storage.enable": "true"}
BEFORE = 3  # records of each topic before it is switched


@dataclass(frozen=True, slots=True)
class Topics:
    """On one broker, in the states that a topic goes through."""

    broker: BrokerProcess
    client: Client
    classic: str = "classic"
    pending: str = "pending"
    switched: str = "switched"


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    settings = {**QUICK, **ONE_AT_A_TIME}
    with running_broker(tmp_path_factory.mktemp("rows") / "data", settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        with client_of(broker) as client:
            for name in ("classic", "switched", "pending"):
                create(admin, name, TIERED)
                assert ask_to_produce(client, name, batch(b"a", b"b", b"c")) == Asked(0, 0, 0)
        switch(admin, "switched")
        assert wait_switched(broker, "switched") == [BEFORE]
        wait_state(broker, "switched", HYBRID)
        hold_queue(broker, admin)
        switch(admin, "pending")
        wait_until(lambda: is_waiting(broker, "pending"), what="the second switch to wait")
        with client_of(broker) as client:
            yield Topics(broker, client)


class TestProduceByState:
    def test_row_before_migration_the_leader_appends_to_its_log(self, topics: Topics) -> None:
        answer = ask_to_produce(topics.client, topics.classic, batch(b"d"))
        assert answer == Asked(0, ask_for_offset(topics.client, topics.classic, LATEST).offset - 1, 0)

    def test_row_migration_pending_the_leader_appends_to_its_log_until_it_is_its_turn(self, topics: Topics) -> None:
        answer = ask_to_produce(topics.client, topics.pending, batch(b"d"))
        assert answer == Asked(0, ask_for_offset(topics.client, topics.pending, LATEST).offset - 1, 0)
        assert boundaries(topics.broker, topics.pending) == [-1]

    def test_row_migration_pending_the_leader_quiesces_with_request_timed_out(self, tmp_path: Path) -> None:
        """While the boundary cannot be persisted. Reads go on, as the row of Fetch says; then nothing is missing."""
        with running_broker(tmp_path / "data", QUICK) as broker, client_of(broker) as client:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            create(admin, "t", TIERED)
            ask_to_produce(client, "t", batch(b"a"))
            appended = 1
            with closing(sqlite3.connect(broker.data_dir / "metadata.db", isolation_level=None)) as database:
                database.execute(
                    "CREATE TRIGGER refuses_boundaries BEFORE INSERT ON inkless_log "
                    "BEGIN SELECT RAISE(ABORT, 'no boundaries today'); END"
                )
                switch(admin, "t")

                def is_quiescing() -> bool:
                    nonlocal appended
                    answer = ask_to_produce(client, "t", batch(b"x"))
                    if answer.error == ErrorCode.NONE:
                        assert answer.offset == appended
                        appended += 1
                    return answer.error == ErrorCode.REQUEST_TIMED_OUT

                wait_until(is_quiescing, what="the log to be sealed")
                assert ask_for_offset(client, "t", LATEST) == Asked(0, appended)
                assert len(offsets_in(ask_to_fetch(client, "t", 0))) == appended
                database.execute("DROP TRIGGER refuses_boundaries")
            assert wait_switched(broker, "t") == [appended]
            assert ask_to_produce(client, "t", batch(b"x")) == Asked(0, appended, 0)

    def test_row_after_b0_set_the_leader_routes_to_diskless_storage(self, topics: Topics) -> None:
        end = ask_for_offset(topics.client, topics.switched, LATEST).offset
        assert ask_to_produce(topics.client, topics.switched, batch(b"d")) == Asked(0, end, 0)
        (partition,) = status(topics.broker, topics.switched)["partitions"]
        assert partition["high_watermark"] == end + 1 > partition["b0"]

    @pytest.mark.parametrize("acks", [0, 1])
    def test_row_after_b0_set_whatever_acks_the_producer_wants(self, topics: Topics, acks: int) -> None:
        end = ask_for_offset(topics.client, topics.switched, LATEST).offset
        if acks:
            assert ask_to_produce(topics.client, topics.switched, batch(b"d"), acks=acks).offset == end
        else:
            tell_without_an_answer(topics, batch(b"d"))
        wait_until(lambda: ask_for_offset(topics.client, topics.switched, LATEST).offset == end + 1, what="the record")

    def test_row_after_b0_set_transactions_are_refused(self, topics: Topics) -> None:
        records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
        assert ask_to_produce(topics.client, topics.switched, records).error == ErrorCode.INVALID_TXN_STATE


def tell_without_an_answer(topics: Topics, records: bytes) -> None:
    request = produce_request(topics.switched, records, acks=0)
    topics.client.send(encode_request(ApiKey.PRODUCE, PRODUCE_VERSION, 1, "row", request))


class TestFetchByState:
    def test_row_before_migration_the_classic_path(self, topics: Topics) -> None:
        row = ask_to_fetch(topics.client, topics.classic, 0)
        assert (row.error_code, offsets_in(row)[:BEFORE]) == (0, [0, 1, 2])

    def test_row_b0_not_set_the_classic_path_goes_on(self, topics: Topics) -> None:
        row = ask_to_fetch(topics.client, topics.pending, 0)
        assert (row.error_code, offsets_in(row)[:BEFORE]) == (0, [0, 1, 2])
        assert row.high_watermark == ask_for_offset(topics.client, topics.pending, LATEST).offset

    def test_row_after_b0_set_below_it_the_prefix(self, topics: Topics) -> None:
        ask_to_produce(topics.client, topics.switched, batch(b"d"))
        end = ask_for_offset(topics.client, topics.switched, LATEST).offset
        for offset in range(BEFORE):
            row = ask_to_fetch(topics.client, topics.switched, offset)
            assert (row.error_code, offsets_in(row)) == (0, [0, 1, 2])
            assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (end, end, 0)

    def test_row_after_b0_set_at_and_above_it_the_diskless_path(self, topics: Topics) -> None:
        ask_to_produce(topics.client, topics.switched, batch(b"d"))
        end = ask_for_offset(topics.client, topics.switched, LATEST).offset
        row = ask_to_fetch(topics.client, topics.switched, BEFORE, wait_ms=10_000)
        assert (row.error_code, offsets_in(row)) == (0, list(range(BEFORE, end)))
        assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (end, end, 0)


class TestErrorsOfFetch:
    @pytest.mark.parametrize("beyond", [0, 1, 1000])
    def test_row_follower_fetch_at_or_above_b0_no_error_no_records_and_ends_of_at_most_b0(
        self, topics: Topics, beyond: int
    ) -> None:
        ask_to_produce(topics.client, topics.switched, batch(b"d"))
        row = ask_to_fetch(topics.client, topics.switched, BEFORE + beyond, replica_id=2, wait_ms=100)
        assert (row.error_code, offsets_in(row)) == (0, [])
        assert (row.high_watermark, row.last_stable_offset) == (BEFORE, BEFORE)

    def test_row_follower_fetch_below_b0_the_prefix_and_ends_of_at_most_b0(self, topics: Topics) -> None:
        row = ask_to_fetch(topics.client, topics.switched, 0, replica_id=2)
        assert (row.error_code, offsets_in(row)) == (0, [0, 1, 2])
        assert (row.high_watermark, row.last_stable_offset) == (BEFORE, BEFORE)

    def test_row_below_b0_where_hybrid_reads_are_off(self, tmp_path: Path) -> None:
        """`inkless.hybrid.read.enabled=false`: NOT_LEADER_OR_FOLLOWER below the boundary, everything above it."""
        settings = {**QUICK, "inkless.hybrid.read.enabled": "false"}
        with running_broker(tmp_path / "data", settings) as broker, client_of(broker) as client:
            switched_topic(broker, client)
            row = ask_to_fetch(client, "t", 0)
            assert (row.error_code, offsets_in(row)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
            assert ask_for_offset(client, "t", EARLIEST).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
            row = ask_to_fetch(client, "t", BEFORE, wait_ms=10_000)
            assert (row.error_code, offsets_in(row)) == (0, [BEFORE])
            assert ask_for_offset(client, "t", LATEST) == Asked(0, BEFORE + 1)


def switched_topic(broker: BrokerProcess, client: Client) -> None:
    """A topic `t` with records on both sides of its boundary."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, "t", TIERED)
    ask_to_produce(client, "t", batch(b"a", b"b", b"c"))
    switch(admin, "t")
    assert wait_switched(broker, "t") == [BEFORE]
    assert ask_to_produce(client, "t", batch(b"d")).error == ErrorCode.NONE


class TestErrorsOfListOffsets:
    def test_row_missing_partition_is_unknown(self, topics: Topics) -> None:
        for timestamp in (EARLIEST, LATEST, 0):
            found = ask_for_offset(topics.client, topics.switched, timestamp, partition=7)
            assert found.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_row_earliest_of_a_hybrid_partition_is_that_of_the_prefix(self, topics: Topics) -> None:
        assert ask_for_offset(topics.client, topics.switched, EARLIEST) == Asked(0, 0)

    def test_row_b0_not_set_the_leader_answers_from_its_log(self, topics: Topics) -> None:
        assert ask_for_offset(topics.client, topics.pending, EARLIEST) == Asked(0, 0)
        assert ask_for_offset(topics.client, topics.pending, 0).offset == 0

    def test_row_a_suffix_candidate_below_b0_is_kafka_storage_error(self, tmp_path: Path) -> None:
        """A database that was damaged: nothing is answered rather than a wrong offset."""
        with running_broker(tmp_path / "data", QUICK) as broker, client_of(broker) as client:
            switched_topic(broker, client)
            late, wrong = (
                T0 + 1_000_000,
                "UPDATE inkless_batch SET base_offset = 2, last_offset = 5 WHERE base_offset = 4",
            )
            ask_to_produce(client, "t", batch(b"e", b"f", b"g", b"h", first_timestamp=late))
            assert ask_for_offset(client, "t", late) == Asked(0, BEFORE + 1, late)
            with closing(sqlite3.connect(broker.data_dir / "metadata.db", isolation_level=None)) as database:
                assert database.execute(wrong).rowcount == 1
            broker.restart()
            with client_of(broker) as again:
                assert ask_for_offset(again, "t", late).error == ErrorCode.KAFKA_STORAGE_ERROR
                assert ask_for_offset(again, "t", 0) == Asked(0, 0, T0), "the prefix has the smallest offset"


def test_row_misconfiguration_a_broker_without_diskless_storage_answers_kafka_storage_error(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", QUICK) as broker:
        with client_of(broker) as client:
            switched_topic(broker, client)
        broker.stop()
        broker.settings = {**QUICK, "diskless.storage.system.enable": "false"}
        broker.start()
        with client_of(broker) as client:
            storage_error = ErrorCode.KAFKA_STORAGE_ERROR
            assert ask_to_produce(client, "t", batch(b"e")).error == storage_error
            for offset in (0, BEFORE, BEFORE + 1):
                row = ask_to_fetch(client, "t", offset)
                assert (row.error_code, row.records or b"") == (storage_error, b"")
            for timestamp in (EARLIEST, LATEST, 0, -3, -4, -5):
                assert ask_for_offset(client, "t", timestamp).error == storage_error
            assert ask_to_delete(client, "t", 1).error == storage_error
            assert ask_for_end_of_epoch(client, "t", 0)[0] == storage_error
        broker.stop()
        broker.settings = QUICK
        broker.start()
        with client_of(broker) as client:  # and nothing is lost
            assert offsets_in(ask_to_fetch(client, "t", 0)) == [0, 1, 2]
            assert offsets_in(ask_to_fetch(client, "t", BEFORE, wait_ms=10_000)) == [BEFORE]
            assert ask_to_produce(client, "t", batch(b"e")) == Asked(0, BEFORE + 1, 0)
