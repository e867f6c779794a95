"""Who serves a diskless partition whose leader is away: pure, from images made by hand."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from strandline.hybrid.diskless.stand_ins import with_stand_ins
from strandline.metadata.image import PartitionImage, TopicImage


def topic(*leaders: int) -> TopicImage:
    partitions = (PartitionImage(n, (1,), (1,), leader, 4, 5) for n, leader in enumerate(leaders))
    return TopicImage("t", UUID(int=9), tuple(partitions))


def test_leaders_that_can_be_reached_stay() -> None:
    image = topic(1, 2, 1)
    assert with_stand_ins(image, {1, 2, 3}) is image


def test_a_partition_without_a_leader_gets_one_that_holds_it_alone() -> None:
    first, second = with_stand_ins(topic(1, -1), {1}).partitions
    assert first == topic(1, -1).partitions[0]
    assert (second.leader, second.replicas, second.isr, second.leader_epoch) == (1, (1,), (1,), 4)


def test_everybody_names_the_same_stand_in_and_partitions_are_spread() -> None:
    image = topic(*[7] * 300)
    seen = with_stand_ins(image, [3, 1, 2])
    assert seen == with_stand_ins(image, {1, 2, 3})
    share = Counter(partition.leader for partition in seen.partitions)
    assert set(share) == {1, 2, 3}
    assert min(share.values()) > 60


def test_without_any_broker_there_is_no_stand_in() -> None:
    image = topic(1)
    assert with_stand_ins(image, ()) is image
