"""What a follower tells its leader: everything once, and then only what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.model import INT32_MAX
from strandline.replication.fetching.followed import FollowedPartition
from strandline.replication.fetching.session import FollowerSession
from tests.replication.fetching.model import TOPIC_ID, Node

MAX = 1000
KEY = (TOPIC_ID.bytes, 0)


@pytest.fixture
def followed(tmp_path: Path) -> FollowedPartition:
    one = FollowedPartition(Node(1, tmp_path / "node").partition)
    one.start_at_end()
    return one


@pytest.fixture
def session(followed: FollowedPartition) -> FollowerSession:
    """The leader knows the partition, and has answered."""
    made = FollowerSession()
    made.changed(followed)
    assert made.is_new
    assert made.begin([followed], MAX) == [followed.entry(MAX)]
    assert made.next_ids() == (0, 0)
    made.answered(77)
    return made


def test_what_has_not_changed_is_not_said(session: FollowerSession, followed: FollowedPartition) -> None:
    assert not session.has_news
    assert session.update(MAX) == ([], [])
    session.changed(followed)
    assert session.update(MAX) == ([], [])
    followed.fetch_offset = 5
    session.changed(followed)
    assert session.has_news
    assert session.update(MAX) == ([followed.entry(MAX)], [])
    assert session.update(MAX) == ([], [])


def test_each_request_has_the_next_epoch(session: FollowerSession) -> None:
    assert [session.next_ids() for _ in range(3)] == [(77, 1), (77, 2), (77, 3)]
    session._epoch = INT32_MAX
    assert [session.next_ids() for _ in range(2)] == [(77, INT32_MAX), (77, 1)]


def test_nothing_is_asked_when_nothing_is_left(session: FollowerSession, followed: FollowedPartition) -> None:
    session.left(KEY)
    assert session.update(MAX) is None
    assert session.update(MAX) is None, "the leader still knows it"
    session.changed(followed)
    assert session.update(MAX) == ([], []), "the leader was never told to forget it"
    followed.fetch_offset = 3
    session.left(KEY)
    session.changed(followed)
    assert session.update(MAX) == ([followed.entry(MAX)], [])


def test_a_partition_that_left_is_forgotten_once(tmp_path: Path, session: FollowerSession) -> None:
    other = FollowedPartition(Node(2, tmp_path / "other").partition)
    other.start_at_end()
    other.key = (b"o" * 16, 3)  # type: ignore[misc]
    session.changed(other)
    session.left(KEY)
    found = session.update(MAX)
    assert found is not None
    assert [entry.topic for entry in found[0]] == [b"o" * 16]
    assert found[1] == [KEY]
    assert session.asked(KEY) is None
    assert session.update(MAX) == ([], [])


def test_what_is_not_to_be_asked_for_is_not_said(session: FollowerSession, followed: FollowedPartition) -> None:
    followed.fetch_offset = 9
    followed.retry_at = 3.0
    session.changed(followed)
    assert session.update(MAX) == ([], [])
    asked = session.asked(KEY)
    assert asked is not None
    assert asked.fetch_offset == 0


@pytest.mark.parametrize(
    ("offset", "epoch", "retry_at", "expected"),
    [(0, -1, None, True), (1, -1, None, False), (0, 0, None, False), (0, -1, 1.0, False)],
)
def test_which_answers_may_be_used(
    followed: FollowedPartition, offset: int, epoch: int, retry_at: float | None, expected: bool
) -> None:
    asked = followed.entry(MAX)._replace(fetch_offset=offset, current_leader_epoch=epoch)
    followed.retry_at = retry_at
    assert followed.is_answered_by(asked) is expected


def test_after_a_lost_answer_the_session_is_closed_and_another_one_begun(
    session: FollowerSession, followed: FollowedPartition
) -> None:
    session.next_ids()
    session.restart()
    assert session.is_new
    assert session.begin([followed], MAX) == [followed.entry(MAX)]
    assert session.next_ids() == (77, 0)
    session.answered(78)
    assert session.next_ids() == (78, 1)


def test_a_leader_that_has_no_session_is_told_everything_again(session: FollowerSession) -> None:
    session.next_ids()
    session.forgotten_by_leader()
    assert session.is_new
    assert session.next_ids() == (0, 0)
    session.answered(0)
    assert session.is_new, "it has no room for sessions"
