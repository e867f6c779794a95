"""Where a follower cuts its log: KIP-101, KIP-279, and bugs that Kafka has had with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.replication.fetching.cutting import end_in_common
from tests.log.harness import batch
from tests.replication.fetching.model import Cluster, Node


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "nodes")


class Reader:
    """A consumer that waits: it looks how far it may read when it is told to look again."""

    def __init__(self, node: Node, shown: list[int]) -> None:
        self._node, self._shown = node, shown

    def notify(self) -> None:
        self._shown.append(self._node.log.high_watermark)


def ends(cluster: Cluster) -> list[int]:
    return [node.log.log_end_offset for node in cluster.nodes]


def replicated(cluster: Cluster, *values: bytes) -> Node:
    """A leader (0) whose followers have everything, and know that."""
    leader = cluster.lead(0)
    leader.append(*values)
    cluster.exchange(1, 2, rounds=4)
    return leader


@pytest.mark.parametrize(
    ("leaders", "own", "expected"),
    [
        ((3, 50), (3, 40), 40),  # the same epoch: what both have of it
        ((3, 50), (3, 60), 50),
        ((3, 30), (2, 40), 40),  # KIP-279: the epoch is not known here, and where the one before ended is a beginning
        ((-1, 50), (-1, -1), 50),
        ((3, 50), (-1, -1), 50),
        ((3, -1), (3, 40), 30),  # the leader knows no epoch at all: what is replicated is certain
        ((3, 500), (3, 400), 100),  # never above the own end
        ((-1, 500), (-1, -1), 100),
        ((3, 500), (-1, -1), 100),
        ((3, 500), (2, 400), 100),
    ],
)
def test_the_table_of_ends(leaders: tuple[int, int], own: tuple[int, int], expected: int) -> None:
    assert end_in_common(leaders, lambda epoch: own, log_end=100, high_watermark=30) == expected


@given(st.tuples(st.integers(-1, 9), st.integers(-1, 40)), st.tuples(st.integers(-1, 9), st.integers(-1, 40)))
def test_the_end_is_never_above_the_own_log(leaders: tuple[int, int], own: tuple[int, int]) -> None:
    assert end_in_common(leaders, lambda epoch: own, log_end=20, high_watermark=10) <= 20


def test_kip_101_a_follower_that_becomes_leader_keeps_what_was_above_its_high_watermark(cluster: Cluster) -> None:
    """Kafka once cut at the high watermark, which a follower learns later than its leader: a record was lost."""
    leader = cluster.lead(0)
    leader.append(b"a")
    cluster.exchange(1, 2)
    cluster.exchange(1, 2)  # the leader knows that all have it; the followers are told with the next answer
    assert leader.log.high_watermark == 1
    behind = cluster.nodes[1]
    assert behind.log.high_watermark == 0
    cluster.lead(1)
    assert ends(cluster) == [1, 1, 1], "the record was acknowledged"
    cluster.settle()
    cluster.check_same()


def test_kip_101_logs_do_not_diverge_after_both_have_failed(cluster: Cluster) -> None:
    """The old leader has a record that no other has; the new one appends another at that offset."""
    old = replicated(cluster, b"a")
    old.append(b"only here")
    new = cluster.lead(1)
    new.append(b"another")
    cluster.settle()
    cluster.check_same()
    assert old.cut == [1]


def test_kip_279_a_follower_does_not_know_the_epoch_that_the_leader_names(cluster: Cluster) -> None:
    """Two quick elections: each broker has an epoch that the others never had."""
    replicated(cluster, b"a")
    for leader in (0, 1, 2):
        cluster.elect(leader)
        cluster.apply(leader)
        cluster.nodes[leader].append(b"only at %d" % leader)
    newest = cluster.nodes[2]
    cluster.settle()
    newest.append(b"b")
    cluster.settle()
    cluster.check_same()
    assert ends(cluster) == [3, 3, 3]


def test_kafka_10706_epochs_without_records_are_forgotten(cluster: Cluster) -> None:
    replicated(cluster, b"a")
    cluster.elect(1)
    cluster.apply(1)
    idle = cluster.nodes[1]
    assert idle.log.epochs.latest == cluster.image.leader_epoch
    leader = cluster.lead(2)
    leader.append(b"b")
    cluster.settle()
    cluster.check_same()


def test_kafka_14704_an_answer_that_tells_of_a_divergence_moves_neither_end(cluster: Cluster) -> None:
    old = replicated(cluster, b"a")
    cluster.elect(1)
    cluster.apply(1)
    new = cluster.nodes[1]
    old.append(b"b", b"c")
    new.append(b"d", b"e")
    cluster.apply(0)
    cluster.apply(2)
    cluster.exchange(2, rounds=3)
    new.log.update_high_watermark(3)
    high_watermark = old.log.high_watermark
    shown: list[int] = []
    old.partition.watch(Reader(old, shown))
    cluster.exchange(0)
    assert (old.log.log_end_offset, old.log.high_watermark) == (1, high_watermark)
    assert shown == []
    cluster.settle()
    cluster.check_same()


def test_kafka_18991_a_late_answer_of_an_earlier_epoch_is_dropped(cluster: Cluster) -> None:
    replicated(cluster, b"a")
    follower = cluster.nodes[2]
    cluster.nodes[0].append(b"b")
    assert cluster.ask(2)
    cluster.elect(1)
    cluster.apply(2)
    assert cluster.answer(2)
    assert follower.log.log_end_offset == 1, "it was asked in an epoch that is over"
    cluster.settle()
    cluster.check_same()


def test_kafka_18991_a_late_answer_to_the_same_leader_in_a_later_epoch_is_dropped(cluster: Cluster) -> None:
    replicated(cluster, b"a")
    follower = cluster.nodes[2]
    cluster.nodes[0].append(b"b")
    assert cluster.ask(2)
    cluster.elect(0)
    cluster.apply(2)
    assert cluster.answer(2)
    assert follower.log.log_end_offset == 1
    cluster.settle()
    cluster.check_same()


def test_kafka_18723_batches_of_a_later_epoch_than_the_request_are_not_appended(cluster: Cluster) -> None:
    leader = replicated(cluster, b"a")
    follower = cluster.nodes[1]
    leader.append(b"b")
    leader.log.append(batch(value=b"c"), leader_epoch=9)
    cluster.exchange(1)
    assert follower.log.log_end_offset == 2
    cluster.exchange(1)
    assert follower.log.log_end_offset == 2
    assert [one.attempts for one in follower.state.followed] == [1], "it is not asked for again at once"


def test_kafka_15510_an_empty_answer_keeps_the_last_epoch(cluster: Cluster) -> None:
    replicated(cluster, b"a")
    cluster.exchange(1, rounds=2)
    [followed] = cluster.nodes[1].state.followed
    assert followed.last_fetched_epoch == cluster.image.leader_epoch


def test_kafka_9491_a_log_that_begins_again_has_its_high_watermark_there(cluster: Cluster) -> None:
    leader = cluster.lead(0)
    leader.append(b"a", b"b", b"c")
    leader.log.update_high_watermark(3)
    leader.roll_and_drop()
    leader.append(b"d")
    cluster.exchange(1, 2, rounds=6)
    for node in cluster.nodes[1:]:
        assert node.log.log_start_offset == 3
        assert node.log.high_watermark >= 3


def test_the_leader_has_less_after_an_unclean_election(cluster: Cluster) -> None:
    """Its epochs are gone, too: only the end of its log says where to go on."""
    old = replicated(cluster, b"a", b"b", b"c")
    new = cluster.nodes[1]
    new.log.truncate_fully_and_start_at(0)
    cluster.lead(1)
    new.append(b"d")
    cluster.settle()
    cluster.check_same()
    assert old.log.log_end_offset == 1


def test_a_follower_that_is_behind_the_log_start_of_its_leader_begins_again(cluster: Cluster) -> None:
    leader = replicated(cluster, b"a")
    absent = cluster.nodes[2]
    leader.append(b"b", b"c")
    leader.log.update_high_watermark(3)
    leader.roll_and_drop()
    leader.append(b"d")
    cluster.settle()
    cluster.check_same()
    assert (absent.log.log_start_offset, absent.log.log_end_offset) == (3, 4)


def test_the_log_start_of_the_leader_lies_inside_a_batch(cluster: Cluster) -> None:
    leader = cluster.lead(0)
    leader.append(b"a", b"b", b"c")
    leader.log.update_high_watermark(3)
    leader.log.delete_records(1)
    cluster.settle()
    cluster.check_same()
    assert [node.log.log_start_offset for node in cluster.nodes] == [1, 1, 1]


def test_the_own_log_ends_inside_a_batch_that_the_leader_has_deleted_in_part(cluster: Cluster) -> None:
    """Nothing of it is in the leader's log any more, so its end need not fit to the leader's batches."""
    former = cluster.lead(1)
    for value in (b"a", b"b", b"c"):
        former.append(value)
    leader = cluster.lead(0)
    leader.append(b"1")
    leader.append(b"2")
    leader.append(b"3", b"4", b"5")
    cluster.exchange(2, rounds=4)
    leader.log.update_high_watermark(5)
    leader.log.delete_records(3)
    assert former.log.log_end_offset == 3
    cluster.settle()
    cluster.check_same()
    assert ends(cluster) == [5, 5, 5]


def test_t7_no_truncation_while_large_writes_are_under_way(cluster: Cluster) -> None:
    old = replicated(cluster, b"a")
    old.append_later(b"late")
    assert old.log.has_pending_appends
    new = cluster.lead(1)
    new.append(b"b")
    cluster.exchange(0, rounds=3)
    assert old.cut == [], "what is written late would lie behind the cut"
    old.write_all()
    assert old.wakes
    cluster.settle()
    cluster.check_same()
    assert old.cut == [1]


def test_t7_a_leader_queues_behind_the_writes_of_the_time_in_which_it_followed(cluster: Cluster) -> None:
    leader = cluster.lead(0)
    leader.append_later(b"a")
    leader.write_all()
    follower = cluster.nodes[1]
    cluster.exchange(1)
    assert follower.log.has_pending_appends
    cluster.lead(1)
    follower.append(b"b")
    assert follower.log.log_end_offset == 0
    follower.write_all()
    assert follower.log.log_end_offset == 2
    cluster.settle()
    cluster.check_same()


def test_t7_what_was_written_late_belongs_to_the_next_leadership(cluster: Cluster) -> None:
    """A follower leads for a moment, and follows again, all while its own append is under way."""
    leader = cluster.lead(0)
    leader.append_later(b"a")
    leader.write_all()
    follower = cluster.nodes[1]
    cluster.exchange(1)
    cluster.lead(1)
    cluster.lead(0)
    assert [one.stage.name for one in follower.state.followed] == ["SETTLING"]
    follower.write_all()
    assert [one.fetch_offset for one in follower.state.followed] == [1]
    cluster.settle()
    cluster.check_same()
