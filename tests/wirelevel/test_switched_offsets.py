"""Offsets, times, epochs and ends of a log of which one part is classic and the other diskless, against a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.model import INT64_MAX
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.registry import encode_request
from tests.broker import BrokerProcess, running_broker
from tests.clients.switching import HYBRID, switch, wait_state, wait_switched
from tests.clients.tiering import QUICK, create, first_local_offset
from tests.moments import T0
from tests.server.handlers.producing import produce
from tests.waiting import wait_until
from tests.wirelevel.asking import (
    FETCH_VERSION,
    Asked,
    ask_for_end_of_epoch,
    ask_for_offset,
    ask_to_delete,
    ask_to_fetch,
    ask_to_produce,
    client_of,
    fetch_request,
    offsets_in,
)
from tests.wirelevel.raw import batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
PATIENCE_MS = 60_000  # longer than a client of these tests waits
# Neither part is in the order of time; the suffix has the latest record, and earlier ones than the prefix.
PREFIX_0, PREFIX_1 = [(10, 20, 5), (40, 30)], [(100, 50), (45,)]
SUFFIX = [(60, 7), (120, 90, 110)]
B0 = 8
EVERY_RECORD = [T0 + time for batches in (PREFIX_0, PREFIX_1, SUFFIX) for times in batches for time in times]
END = len(EVERY_RECORD)


@dataclass(slots=True)
class Switched:
    """A broker with a topic that it has switched, in epoch 2; the suffix is of epoch 4. A restart takes two."""

    broker: BrokerProcess
    topic: str
    is_local: bool
    client: Client


@pytest.fixture(scope="module", params=["local prefix", "remote prefix"])
def switched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switched]:
    is_local = request.param == "local prefix"
    with running_broker(tmp_path_factory.mktemp("offsets") / "data", QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        configs = {"remote.storage.enable": "true", "retention.ms": "-1"}
        topic = create(admin, "t", configs if is_local else {**configs, "local.retention.ms": "1"})
        write(broker, topic, PREFIX_0)
        broker.restart()
        write(broker, topic, PREFIX_1)
        switch(admin, topic)
        assert wait_switched(broker, topic) == [B0]
        wait_state(broker, topic, HYBRID)
        broker.restart()
        write(broker, topic, SUFFIX)
        if not is_local:
            wait_until(lambda: first_local_offset(broker, topic) == B0, "the prefix to leave the disk")
        with client_of(broker) as client:
            yield Switched(broker, topic, is_local, client)


def write(broker: BrokerProcess, topic: str, batches: list[tuple[int, ...]]) -> None:
    with client_of(broker) as client:
        for times in batches:
            produce(client, topic, *(T0 + time for time in times))


def test_earliest_and_latest_are_those_of_the_whole_log(switched: Switched) -> None:
    for isolation in (0, 1):
        assert ask_for_offset(switched.client, switched.topic, EARLIEST, isolation=isolation) == (0, 0, -1)
        assert ask_for_offset(switched.client, switched.topic, LATEST, isolation=isolation) == (0, END, -1)


def test_the_latest_time_is_found_in_the_suffix(switched: Switched) -> None:
    latest = max(EVERY_RECORD)
    assert ask_for_offset(switched.client, switched.topic, MAX_TIMESTAMP) == (0, EVERY_RECORD.index(latest), latest)


@pytest.mark.parametrize("time", [0, *sorted({time - T0 + extra for time in EVERY_RECORD for extra in (0, 1)})])
def test_by_time_the_record_with_the_smallest_offset_is_found(switched: Switched, time: int) -> None:
    found = next(((at, when) for at, when in enumerate(EVERY_RECORD) if when >= T0 + time), (-1, -1))
    assert ask_for_offset(switched.client, switched.topic, T0 + time) == (0, *found)


def test_the_tiers_of_the_log(switched: Switched) -> None:
    local = 0 if switched.is_local else B0
    assert ask_for_offset(switched.client, switched.topic, EARLIEST_LOCAL)[:2] == (0, local)
    # As in Kafka, a leader knows what is tiered from the first run of its copy task on.
    wait_until(
        lambda: ask_for_offset(switched.client, switched.topic, LATEST_TIERED)[:2] == (0, B0 - 1),
        "the leader to know what is tiered",
    )
    assert ask_for_offset(switched.client, switched.topic, PENDING_UPLOAD)[:2] == (0, -1), "the suffix is not uploaded"


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, (0, 0, 5)), (1, (0, 0, 5)), (2, (0, 2, END)), (3, (0, 3, END)), (4, (0, 4, END)), (5, (0, -1, -1))],
)
def test_where_epochs_end(switched: Switched, epoch: int, end: tuple[int, int, int]) -> None:
    """Epochs 0 and 2 are of the prefix, epoch 4 of the suffix. From the switch on, no epoch ever loses a record."""
    assert ask_for_end_of_epoch(switched.client, switched.topic, epoch) == end


@pytest.mark.parametrize(
    ("offset", "last_epoch"),
    [(0, -1), (5, 0), (7, 2), (B0, 2), (B0 + 1, 4), (B0, 4), (END, 4)],
)
def test_a_reader_that_follows_the_epochs_finds_no_divergence(switched: Switched, offset: int, last_epoch: int) -> None:
    row = ask_to_fetch(switched.client, switched.topic, offset, last_epoch=last_epoch)
    assert (row.error_code, row.diverging_epoch.epoch) == (0, -1)


def test_a_reader_that_has_more_of_an_epoch_than_the_prefix_is_told_where_it_ends(switched: Switched) -> None:
    for offset in (6, B0 + 1):
        row = ask_to_fetch(switched.client, switched.topic, offset, last_epoch=0)
        assert (row.error_code, row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 0, 5)


@pytest.mark.parametrize("isolation", [0, 1])
def test_a_fetch_never_crosses_the_boundary(switched: Switched, isolation: int) -> None:
    """And every answer tells the ends of the whole log."""
    for offset in range(END):
        row = ask_to_fetch(switched.client, switched.topic, offset, isolation=isolation, wait_ms=PATIENCE_MS)
        found = [at for at in offsets_in(row) if at >= offset]
        assert found[0] == offset
        assert (found[-1] < B0) is (offset < B0)
        assert found == list(range(offset, found[-1] + 1))
        assert (row.error_code, row.high_watermark, row.last_stable_offset, row.log_start_offset) == (0, END, END, 0)


def test_a_fetch_of_the_prefix_does_not_wait_for_bytes_that_never_come(switched: Switched) -> None:
    for offset in (0, B0 - 1):
        row = ask_to_fetch(switched.client, switched.topic, offset, min_bytes=1_000_000, wait_ms=PATIENCE_MS)
        assert offset in offsets_in(row)


def test_a_fetch_of_few_bytes_gets_one_batch_of_either_part(switched: Switched) -> None:
    assert offsets_in(ask_to_fetch(switched.client, switched.topic, 0, max_bytes=1)) == [0, 1, 2]
    assert offsets_in(ask_to_fetch(switched.client, switched.topic, 7, max_bytes=1)) == [7]
    assert offsets_in(ask_to_fetch(switched.client, switched.topic, B0, max_bytes=1)) == [8, 9]


def test_a_fetch_behind_the_end_or_before_the_start_is_out_of_range(switched: Switched) -> None:
    for offset in (-1, END + 1, INT64_MAX):
        row = ask_to_fetch(switched.client, switched.topic, offset)
        assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    row = ask_to_fetch(switched.client, switched.topic, END)
    assert (row.error_code, offsets_in(row), row.high_watermark) == (0, [], END)


def test_the_latest_time_is_found_in_the_prefix_until_the_suffix_has_a_later_one(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = create(admin, "t", {"remote.storage.enable": "true", "retention.ms": "-1"})
        with client_of(broker) as client:
            assert ask_for_offset(client, topic, MAX_TIMESTAMP) == (0, -1, -1)
            produce(client, topic, T0 + 5, T0 + 9, T0 + 7)
            switch(admin, topic)
            wait_switched(broker, topic)
            assert ask_for_offset(client, topic, MAX_TIMESTAMP) == (0, 1, T0 + 9)
            produce(client, topic, T0 + 8, T0 + 9)
            assert ask_for_offset(client, topic, MAX_TIMESTAMP) == (0, 1, T0 + 9), "the first of equal ones"
            produce(client, topic, T0 + 1, T0 + 10)
            assert ask_for_offset(client, topic, MAX_TIMESTAMP) == (0, 6, T0 + 10)
            # What is deleted is not found any more, in whichever part it was.
            assert ask_to_delete(client, topic, 2) == (0, 2, -1)
            assert ask_for_offset(client, topic, T0) == (0, 2, T0 + 7)
            assert ask_to_delete(client, topic, 4) == (0, 4, -1)
            assert ask_for_offset(client, topic, T0) == (0, 4, T0 + 9)
            assert ask_for_offset(client, topic, EARLIEST) == (0, 4, -1)
            for offset in (0, 2, 3):
                assert ask_to_fetch(client, topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_long_poll_in_an_incremental_session_is_woken_by_the_first_diskless_record(
    switched: Switched, unique_name: Callable[[], str]
) -> None:
    """The poll began at the end of a classic log."""
    broker = switched.broker
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = create(admin, unique_name(), {"remote.storage.enable": "true"})
    with client_of(broker) as writer, client_of(broker) as reader:
        produce(writer, topic, T0)
        opening = fetch_request(topic, 0)
        opening.session_epoch = 0
        opened = reader.request(ApiKey.FETCH, opening, version=FETCH_VERSION)
        assert (opened.error_code, offsets_in(opened.responses[0].partitions[0])) == (0, [0])
        polling = fetch_request(topic, 1, wait_ms=PATIENCE_MS)
        polling.session_id, polling.session_epoch = opened.session_id, 1
        reader.send(encode_request(ApiKey.FETCH, FETCH_VERSION, 77, "poll", polling))
        switch(admin, topic)
        assert wait_switched(broker, topic) == [1]
        assert ask_to_produce(writer, topic, batch(b"news")) == Asked(0, 1, 0)
        answer = reader.receive()
        assert b"news" in answer
