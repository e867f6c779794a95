"""ListOffsets of a tiered log, as far as the local log can say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.log import LogManager
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOTHING,
    FetchIsolation,
    FoundOffset,
)
from strandline.replication.offsets import list_offset
from tests.golden import copy_of, read_json
from tests.golden import kafka_tiered as kafka_tiered
from tests.log.test_golden_tiered import highest_remote, managed
from tests.log.test_tiering import made, tiered

LEADER_EPOCH = 20
ISOLATIONS = {"read_uncommitted": FetchIsolation.HIGH_WATERMARK, "read_committed": FetchIsolation.TXN_COMMITTED}
SPECIAL = {
    "-2 earliest": EARLIEST,
    "-3 max_timestamp": MAX_TIMESTAMP,
    "-4 earliest_local": EARLIEST_LOCAL,
    "-5 latest_tiered": LATEST_TIERED,
    "-6 earliest_pending_upload": EARLIEST_PENDING_UPLOAD,
}


@pytest.fixture
def golden(kafka_tiered: Path, tmp_path: Path) -> Iterator[LogManager]:
    manager = managed(kafka_tiered, copy_of(kafka_tiered / "tiered/local", tmp_path / "local"))
    yield manager
    manager.shutdown()


def test_special_offsets_are_those_of_kafka(golden: LogManager, kafka_tiered: Path) -> None:
    expected: dict[str, Any] = read_json(kafka_tiered / "expected/tiered/list_offsets.json")
    highest = highest_remote(kafka_tiered)
    compared = 0
    for log in golden.all_logs():
        name = str(log.topic_partition)
        if not name.startswith("fx-"):
            continue
        log.remote.update_highest_offset(highest.get(name, -1))
        for isolation, special in ((i, s) for i in ISOLATIONS for s in SPECIAL):
            found = list_offset(log, SPECIAL[special], isolation=ISOLATIONS[isolation], leader_epoch=LEADER_EPOCH)
            wanted = expected[name][isolation][special]
            epoch = -1 if wanted["leader_epoch"] is None else wanted["leader_epoch"]
            assert found == FoundOffset(wanted["timestamp"], wanted["offset"], epoch), (name, special)
            compared += 1
    assert compared == 11 * 2 * 5


def ask(harness: Any, timestamp: int) -> FoundOffset:
    return list_offset(harness.log, timestamp, isolation=FetchIsolation.HIGH_WATERMARK, leader_epoch=LEADER_EPOCH)


def test_nothing_is_copied_yet(tmp_path: Path) -> None:
    harness = made(tmp_path)
    assert ask(harness, LATEST_TIERED) == NOTHING
    assert ask(harness, EARLIEST_PENDING_UPLOAD) == (-1, 0, 0)


def test_a_leader_that_does_not_know_yet_what_was_copied_cannot_say_where_it_goes_on(tmp_path: Path) -> None:
    harness = tiered(tmp_path)
    assert ask(harness, EARLIEST_PENDING_UPLOAD) == (-1, 6, 6)
    harness.reopen()
    assert ask(harness, LATEST_TIERED) == NOTHING
    assert ask(harness, EARLIEST_PENDING_UPLOAD) == NOTHING
    assert ask(harness, EARLIEST) == (-1, 0, 0)
    assert ask(harness, EARLIEST_LOCAL) == (-1, 6, 6)


def test_what_was_deleted_is_not_pending(tmp_path: Path) -> None:
    harness = tiered(tmp_path)
    harness.log.delete_records(8)
    assert ask(harness, EARLIEST_PENDING_UPLOAD) == (-1, 8, 8)


def test_an_ordinary_log_has_no_remote_offsets(tmp_path: Path) -> None:
    harness = made(tmp_path, remote_storage_enable=False)
    assert ask(harness, LATEST_TIERED) == ask(harness, EARLIEST_PENDING_UPLOAD) == NOTHING
    assert ask(harness, EARLIEST_LOCAL) == ask(harness, EARLIEST) == (-1, 0, 0)
