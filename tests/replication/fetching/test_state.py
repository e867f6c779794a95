"""What a fetcher asks, and what errors make of it. None of them stops the other partitions."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from strandline.errors import StrandlineError
from strandline.log import UnifiedLog
from strandline.replication.fetching.followed import FetchStage, FollowedPartition
from strandline.replication.fetching.ranges import OffsetAnswer, OffsetQuestion
from strandline.replication.fetching.retries import FIRST_RETRY_SECONDS, retry_delay
from strandline.wire.errors import ErrorCode
from strandline.wire.fetch_client import FetchedPartition, FetchedPartitions, FollowerFetch
from tests.log.harness import batch
from tests.replication.fetching.model import SETTINGS, TOPIC_ID, TP, Cluster, Frame, Node

BACKOFF = SETTINGS.replica_fetch_backoff_ms / 1000
PASSING = [
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path / "nodes", 2)
    made.lead(0)
    return made


@pytest.fixture
def follower(cluster: Cluster) -> Node:
    return cluster.nodes[1]


def followed(node: Node) -> FollowedPartition:
    [one] = node.state.followed
    return one


def ask(node: Node, now: float = 0.0) -> FollowerFetch:
    request = node.state.next_request(now)
    assert isinstance(request, FollowerFetch)
    return request


def answer(node: Node, now: float = 0.0, *, session: int = 1, **row: object) -> StrandlineError | None:
    """The leader answers with one partition. An error of the whole answer is returned."""
    fields = {"error_code": 0, "high_watermark": 0, "log_start_offset": 0, "diverging_epoch": None, "records": None}
    made = FetchedPartition(TOPIC_ID.bytes, 0, **{**fields, **row})  # type: ignore[arg-type]
    return node.state.answered(FetchedPartitions(0, session, [made]), Frame(), now)


def end_of(log: UnifiedLog) -> tuple[int, int]:
    return log.log_end_offset, log.high_watermark


def test_a_request_says_who_asks(follower: Node) -> None:
    request = ask(follower)
    assert (request.replica_id, request.replica_epoch) == (1, 5)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (0, 1, 10_485_760)
    [entry] = request.entries
    assert (entry.topic, entry.partition, entry.fetch_offset, entry.last_fetched_epoch) == (TOPIC_ID.bytes, 0, 0, -1)
    assert (entry.current_leader_epoch, entry.log_start_offset, entry.max_bytes) == (1, 0, 1_048_576)


def test_only_the_first_request_of_a_session_is_answered_at_once(follower: Node) -> None:
    """It is given up when there is something new to ask; without an id the leader would keep a session for nothing."""
    assert ask(follower).max_wait_ms == 0
    answer(follower)
    assert ask(follower).max_wait_ms == 500
    follower.state.lost()
    assert ask(follower).max_wait_ms == 0
    answer(follower, session=0)
    assert ask(follower).max_wait_ms == 500, "the leader has no room for sessions: each request would be a first one"


@pytest.mark.parametrize("code", [*PASSING, 12345])
def test_an_error_that_may_pass_is_followed_by_another_attempt(follower: Node, code: int) -> None:
    ask(follower)
    assert answer(follower, 10.0, error_code=int(code)) is None
    assert follower.state.next_request(10.0) is None
    due = follower.state.next_due()
    assert due == 10.0 + FIRST_RETRY_SECONDS
    assert ask(follower, due).entries == []
    answer(follower, due)
    assert followed(follower).attempts == 0


def test_attempts_that_fail_come_more_and_more_rarely(follower: Node) -> None:
    now, waits = 0.0, []
    for _ in range(12):
        ask(follower, now)
        answer(follower, now, error_code=int(ErrorCode.UNKNOWN_LEADER_EPOCH))
        due = follower.state.next_due()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits[0] == pytest.approx(FIRST_RETRY_SECONDS)
    assert waits == pytest.approx(sorted(waits))
    assert waits[-1] == pytest.approx(BACKOFF)
    assert retry_delay(10_000, most=BACKOFF) == BACKOFF


def test_a_fenced_epoch_waits_for_metadata(cluster: Cluster, follower: Node, caplog: pytest.LogCaptureFixture) -> None:
    ask(follower)
    answer(follower, error_code=int(ErrorCode.FENCED_LEADER_EPOCH))
    assert followed(follower).stage is FetchStage.FAILED
    assert not [one for one in caplog.records if one.levelname == "ERROR"], "each change of leaders brings it"
    assert follower.state.next_due() is None
    assert follower.state.next_request(1000.0) is None
    cluster.lead(0)
    assert followed(follower).stage is FetchStage.FETCHING


def test_metadata_that_says_nothing_new_changes_nothing(cluster: Cluster, follower: Node) -> None:
    before = followed(follower)
    follower.state.follow(follower.partition)
    assert followed(follower) is before


def test_damaged_records_are_asked_for_again(follower: Node) -> None:
    good = batch(value=b"a", leader_epoch=1)
    bad = batch(value=b"b", base_offset=1, leader_epoch=1)
    bad[-1] ^= 1
    ask(follower)
    answer(follower, records=memoryview(bytes(good) + bytes(bad)), high_watermark=2)
    assert end_of(follower.log) == (1, 1), "what came before is whole"
    assert followed(follower).attempts == 1
    due = follower.state.next_due()
    assert due is not None
    [entry] = ask(follower, due).entries
    assert entry.fetch_offset == 1


def test_records_of_an_offset_that_is_there_already_are_not_appended(follower: Node) -> None:
    ask(follower)
    answer(follower, records=batch(2, leader_epoch=1), high_watermark=2)
    ask(follower)
    answer(follower, records=batch(base_offset=1, leader_epoch=1), high_watermark=3)
    assert end_of(follower.log) == (2, 2)
    assert followed(follower).attempts == 1


def test_a_part_of_a_batch_is_not_asked_for_in_a_tight_loop(follower: Node) -> None:
    ask(follower)
    answer(follower, records=batch(leader_epoch=1)[:-3])
    assert end_of(follower.log) == (0, 0)
    assert follower.state.next_request(0.0) is None


def test_the_batch_that_is_cut_at_the_end_comes_again(follower: Node) -> None:
    whole = bytes(batch(leader_epoch=1))
    part = bytes(batch(base_offset=1, leader_epoch=1))[:-3]
    ask(follower)
    answer(follower, records=memoryview(whole + part))
    [entry] = ask(follower).entries
    assert entry.fetch_offset == 1


def test_a_failed_disk_stops_the_partition(follower: Node) -> None:
    ask(follower)
    follower.log.env.directory.fail(OSError(errno.EIO, "broken"))
    answer(follower, records=batch(leader_epoch=1))
    assert followed(follower).stage is FetchStage.FAILED
    assert "broken" in followed(follower).why_failed


def test_a_large_write_that_fails_stops_the_partition(follower: Node) -> None:
    ask(follower)
    answer(follower, records=batch(value=b"." * 300_000, leader_epoch=1), high_watermark=1)
    assert followed(follower).stage is FetchStage.SETTLING
    assert follower.state.is_writing
    _, written = follower.writer.submitted.popleft()
    written(OSError(errno.ENOSPC, "full"))
    assert followed(follower).stage is FetchStage.FAILED
    assert not follower.state.is_writing


def test_while_it_is_written_it_is_not_asked_for_and_not_counted_as_copied(follower: Node) -> None:
    frame = Frame()
    ask(follower)
    row = FetchedPartition(TOPIC_ID.bytes, 0, 0, 1, 0, None, batch(value=b"." * 300_000, leader_epoch=1))
    follower.state.answered(FetchedPartitions(0, 1, [row]), frame, 0.0)
    assert frame.holds == 1, "the thread writes what lies there"
    assert follower.state.next_request(0.0) is None
    assert end_of(follower.log) == (0, 0)
    follower.write_all()
    assert frame.holds == 0
    assert end_of(follower.log) == (1, 1)
    [entry] = ask(follower).entries
    assert (entry.fetch_offset, entry.last_fetched_epoch) == (1, 1)


def test_flush_messages_takes_the_write_off_the_loop(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "nodes", 2, flush_messages="1")
    cluster.lead(0)
    node = cluster.nodes[1]
    ask(node)
    answer(node, records=batch(leader_epoch=1))
    assert node.log.has_pending_appends
    node.write_all()
    assert node.log.flusher.recovery_point == 1


def test_what_was_left_while_it_was_written_is_finished(follower: Node) -> None:
    ask(follower)
    answer(follower, records=batch(value=b"." * 300_000, leader_epoch=1), high_watermark=1)
    follower.state.leave((TOPIC_ID.bytes, 0))
    follower.write_all()
    assert follower.log.log_end_offset == 1
    assert len(follower.state) == 0


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_kafka_9137_a_lost_session_costs_no_position(follower: Node, code: ErrorCode) -> None:
    ask(follower)
    answer(follower, records=batch(3, leader_epoch=1), session=9)
    assert ask(follower).session_epoch == 1
    assert follower.state.answered(FetchedPartitions(int(code), 0, []), Frame(), 0.0) is None
    request = ask(follower)
    is_known = code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (request.session_id, request.session_epoch) == (9 if is_known else 0, 0)
    assert [entry.fetch_offset for entry in request.entries] == [3]


def test_another_error_of_the_whole_answer_is_told(follower: Node) -> None:
    ask(follower)
    error = follower.state.answered(FetchedPartitions(int(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR), 0, []), Frame(), 0.0)
    assert error is not None
    assert "FETCH_SESSION_TOPIC_ID_ERROR" in str(error)
    assert ask(follower).session_epoch == 0


def test_what_a_lost_connection_has_not_answered_is_asked_again(follower: Node) -> None:
    ask(follower)
    follower.state.lost()
    assert len(ask(follower).entries) == 1


def test_a_request_does_not_wait_longer_than_the_next_attempt_of_another_partition(
    cluster: Cluster, follower: Node
) -> None:
    ask(follower)
    answer(follower, 0.0, error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert follower.state._longest_wait_ms(0.0) == 20
    assert follower.state._longest_wait_ms(0.5) == 0


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, None])
def test_errors_of_list_offsets(follower: Node, code: ErrorCode | None) -> None:
    ask(follower)
    answer(follower, error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    question = follower.state.next_request(0.0)
    assert isinstance(question, OffsetQuestion)
    rows = [] if code is None else [OffsetAnswer(TP.topic, TP.partition, int(code), -1)]
    follower.state.offsets_answered(question, rows, 0.0)
    if code is ErrorCode.FENCED_LEADER_EPOCH:
        assert followed(follower).stage is FetchStage.FAILED
        return
    assert follower.state.next_request(0.0) is None
    due = follower.state.next_due()
    assert due is not None
    assert isinstance(follower.state.next_request(due), OffsetQuestion)


def test_out_of_range_again_and_again_is_no_tight_loop(follower: Node) -> None:
    """The leader has the offset, but not the epoch."""
    now = 0.0
    for _ in range(5):
        request = follower.state.next_request(now)
        while request is None:
            due = follower.state.next_due()
            assert due is not None
            assert due > now
            now = due
            request = follower.state.next_request(now)
        if isinstance(request, OffsetQuestion):
            follower.state.offsets_answered(request, [OffsetAnswer(TP.topic, 0, 0, 0)], now)
        else:
            answer(follower, now, error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert followed(follower).attempts > 1


def test_the_high_watermark_of_a_follower_may_go_back(follower: Node) -> None:
    ask(follower)
    answer(follower, records=batch(3, leader_epoch=1), high_watermark=3)
    assert end_of(follower.log) == (3, 3)
    ask(follower)
    answer(follower, high_watermark=1)
    assert end_of(follower.log) == (3, 1)


def test_a_log_without_epochs_is_cut_at_its_high_watermark(cluster: Cluster, follower: Node) -> None:
    follower.log.append_as_follower(batch(3, leader_epoch=1))
    follower.log.update_high_watermark(1)
    follower.log.epochs.clear()
    cluster.lead(0)
    assert follower.log.log_end_offset == 1
