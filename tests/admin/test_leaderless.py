"""What is said about partitions without a leader."""

from __future__ import annotations

import pytest

from strandline.admin.leaderless import leaderless_sentences
from strandline.hybrid.diskless.assigned import OfflinePartition


def test_nothing_is_said_while_all_are_led() -> None:
    assert leaderless_sentences(()) == ()


def test_partitions_and_the_brokers_that_are_away_are_named() -> None:
    assert leaderless_sentences([OfflinePartition("orders", 3, (2,))]) == (
        "1 partition has no leader until broker 2 is back: orders-3.",
    )
    many = [OfflinePartition("orders", number, (2 + number % 2,)) for number in range(12)]
    names = ", ".join(f"orders-{number}" for number in range(10))
    assert leaderless_sentences(many) == (
        f"12 partitions have no leader until brokers 2, 3 are back: {names} and 2 more.",
    )


@pytest.mark.parametrize(
    ("topic", "word"),
    [
        ("__consumer_offsets", "the groups that are kept in them have no coordinator"),
        ("__transaction_state", "the transactional ids that are kept in them have no coordinator"),
        ("__share_group_state", "the share groups that are kept in them get no records"),
        ("__remote_log_metadata", "nothing is copied or read from remote storage"),
    ],
)
def test_what_it_means_for_internal_topics_is_said(topic: str, word: str) -> None:
    _, meaning = leaderless_sentences([OfflinePartition(topic, number, (2,)) for number in (1, 4)])
    assert meaning.startswith(f"{topic} has no leader for 1, 4: ")
    assert word in meaning
