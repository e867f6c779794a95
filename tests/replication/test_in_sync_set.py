"""A leader and its in-sync set: who joins, who leaves, and what holds the high watermark meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from strandline.config import Settings
from strandline.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidUpdateVersion,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OperationNotAttempted,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.log import AppendOrigin
from strandline.metadata import MetadataImage, TopicImage
from strandline.replication import Append
from strandline.replication.followers import FollowerVisits
from strandline.replication.leader import LARGE_APPEND
from tests.replication.conftest import batch, image
from tests.replication.led import ALL, LAG, Led, registered
from tests.replication.test_roles import Answers


@pytest.fixture
def open_led(tmp_path: Path) -> Iterator[Callable[..., Led]]:
    opened: list[Led] = []

    def make(*, isr: tuple[int, ...] = ALL, min_isr: int = 1) -> Led:
        opened.append(Led(tmp_path, isr=isr, min_isr=min_isr))
        return opened[-1]

    yield make
    for led in opened:
        led.close()


Opening = Callable[..., Led]


async def test_the_slowest_in_sync_follower_holds_the_high_watermark(open_led: Opening) -> None:
    led = open_led()
    answers = led.append(3)
    led.fetch(2, 3)
    assert led.high_watermark == 0, "nothing is known of the other one"
    led.fetch(3, 1)
    assert (led.high_watermark, answers) == (1, [[None], [], []])
    led.fetch(3, 3)
    assert (led.high_watermark, answers) == (3, [[None]] * 3)


async def test_what_is_still_being_written_is_not_replicated(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    told: Answers = []
    led.partition.append(
        Append(batch(b"x", size=LARGE_APPEND), acks=1, origin=AppendOrigin.CLIENT, done=lambda error: None)
    )
    assert (led.end, led.partition.log.reserved_end) == (0, 1)
    assert not led.role.wait_replicated(told.append)
    led.writer.write_next()
    assert told == []
    led.fetch(2, 1)
    assert told == [None]


class Bell:
    """A `Watcher` that counts."""

    def __init__(self) -> None:
        self.rings = 0

    def notify(self) -> None:
        self.rings += 1


async def test_consumers_are_told_of_what_they_can_see_and_followers_of_each_append(open_led: Opening) -> None:
    led, consumer, follower = open_led(isr=(1, 2)), Bell(), Bell()
    led.partition.watch(consumer)
    led.partition.watch_growth(follower)
    led.append(3)
    assert (consumer.rings, follower.rings) == (0, 3)
    led.fetch(2, 2)
    assert (led.high_watermark, consumer.rings, follower.rings) == (2, 1, 3)
    led.fetch(2, 2)
    assert consumer.rings == 1, "nothing has moved"
    led.fetch(2, 3)
    led.follow(isr=(1,))
    assert (consumer.rings, follower.rings) == (3, 3)
    await led.clock.advance(LAG + 1)
    led.append()
    assert (led.high_watermark, consumer.rings, follower.rings) == (4, 4, 4), "this broker alone is in sync"
    led.partition.unwatch(consumer)
    led.partition.unwatch_growth(follower)
    led.append()
    assert (consumer.rings, follower.rings) == (4, 4)


async def test_an_answer_of_the_controller_that_moves_the_high_watermark_is_told(open_led: Opening) -> None:
    led, consumer = open_led(isr=(1, 2)), Bell()
    led.append()
    led.partition.watch(consumer)
    await led.clock.advance(LAG + 1)
    led.role.check_in_sync_set()
    assert led.high_watermark == 0
    led.accept()
    assert (led.high_watermark, consumer.rings) == (1, 1)


async def test_what_waits_is_replicated_when_fewer_in_sync_replicas_are_enough(open_led: Opening) -> None:
    led = open_led(min_isr=3)
    answers = led.append(2)
    led.fetch(2, 2)
    led.follow(isr=(1, 2))
    assert (led.high_watermark, answers) == (0, [[], []]), "broker 3 has left, and two are not enough"
    led.partition.update_config(Settings().topic_config({"min.insync.replicas": "2"}))
    assert (led.high_watermark, answers) == (2, [[None]] * 2), "without another append or another fetch"


async def test_a_follower_that_goes_back_takes_nothing_back(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append(3)
    led.fetch(2, 3)
    led.fetch(2, 1)
    assert led.high_watermark == 3
    led.append()
    led.fetch(2, 2)
    assert led.high_watermark == 3


async def test_t4_one_that_may_have_joined_counts_before_the_answer(open_led: Opening) -> None:
    """The controller may have it in the set, and elect it, before the leader hears of it."""
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(2, 1)
    led.fetch(3, 1)
    assert led.controller.asked == [(1, 2, 3)]
    assert led.controller.proposals[0].is_expansion
    (answers,) = led.append()
    led.clock.move(LAG + 1)
    led.fetch(2, 2)
    assert (led.high_watermark, answers) == (1, []), "broker 3 may be elected, and lacks it"
    led.fetch(3, 2)
    assert (led.high_watermark, answers) == (2, [None])
    led.accept()
    assert led.partition.isr == (1, 2, 3)


async def test_t4_metadata_that_comes_after_its_answer_takes_nothing_from_the_next_proposal(open_led: Opening) -> None:
    led = open_led(isr=(1,))
    led.append()
    led.fetch(2, 1)
    led.accept()
    state = image(isr=(1, 2), replicas=ALL, version=led.version)
    led.fetch(3, 1)
    assert led.controller.asked == [(1, 2, 3)]
    led.partition.follow(state)
    (answers,) = led.append()
    led.clock.move(LAG + 1)
    led.fetch(2, 2)
    assert answers == []
    led.accept()
    assert led.partition.isr == (1, 2, 3)


async def test_one_that_is_to_leave_counts_until_the_controller_has_said_so(open_led: Opening) -> None:
    led = open_led()
    led.append()
    led.fetch(2, 1)
    led.clock.move(LAG + 1)
    led.fetch(2, 1)
    led.role.check_in_sync_set()
    assert led.controller.asked == [(1, 2)]
    assert led.high_watermark == 0
    led.accept()
    assert (led.partition.isr, led.high_watermark) == ((1, 2), 1)


async def test_nobody_leaves_who_has_everything_or_had_it_lately(open_led: Opening) -> None:
    led = open_led()
    led.append()
    led.fetch(2, 1)
    led.fetch(3, 1)
    led.clock.move(10 * LAG)
    led.role.check_in_sync_set()
    assert led.controller.asked == [], "there was nothing new"
    led.fetch(2, 1)
    led.append()
    led.clock.move(LAG)
    led.role.check_in_sync_set()
    assert led.controller.asked == [(1, 2)], "3 was seen before all that"
    led.accept()
    led.clock.move(1)
    led.role.check_in_sync_set()
    assert led.controller.asked == [(1,)]


async def test_a_follower_that_rests_was_caught_up_at_the_last_request_of_its_session(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.fetch(2, 0)
    visits = FollowerVisits()
    assert led.role.follower_rests(2, visits)
    led.clock.move(100 * LAG)
    visits.at = led.clock.monotonic()
    led.append()
    led.role.follower_wakes(2, visits)
    visits.at = led.clock.monotonic() + LAG
    led.role.check_in_sync_set()
    assert led.controller.asked == []
    led.clock.move(LAG + 1)
    led.role.check_in_sync_set()
    assert led.controller.asked == [(1,)]


async def test_only_followers_in_sync_with_everything_may_rest(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(2, 0)
    led.fetch(3, 1)
    assert not led.role.follower_rests(2, FollowerVisits())
    assert not led.role.follower_rests(3, FollowerVisits())


async def test_kafka_7128_who_joins_has_all_of_the_leaders_beginning(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append(3)
    led.follow(isr=(1, 2), next_epoch=True)
    assert (led.high_watermark, led.role.epoch_start, led.role.has_caught_up) == (0, 3, False)
    led.fetch(3, 2)
    assert led.controller.asked == [], "at the high watermark, and below what may be committed"
    led.fetch(3, 3)
    assert led.controller.asked == [(1, 2, 3)]
    told: list[StrandlineError | None] = []
    assert not led.role.wait_caught_up(told.append)
    led.fetch(2, 3)
    assert (told, led.role.has_caught_up) == ([None], True)
    assert led.role.wait_caught_up(told.append)


@pytest.mark.parametrize("fenced", [(3,), ()])
async def test_who_is_fenced_does_not_join_and_holds_nothing_up(open_led: Opening, fenced: tuple[int, ...]) -> None:
    """KIP-841."""
    led = open_led(isr=(1, 2))
    led.brokers.image = registered({1: 10, 2: 20, 3: 30}, fenced=fenced)
    led.append()
    led.fetch(3, 0)
    led.fetch(2, 1)
    assert led.controller.asked == ([] if fenced else [(1, 2, 3)])
    assert led.high_watermark == (1 if fenced else 0)


async def test_t5_an_earlier_incarnation_is_refused(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    with pytest.raises(NotLeaderOrFollower, match=r"epoch 20.*epoch 19"):
        led.fetch(2, 1, epoch=19)
    assert led.high_watermark == 0


@pytest.mark.parametrize("epoch", [-2, 99])
async def test_t5_one_that_the_metadata_does_not_show_moves_nothing(open_led: Opening, epoch: int) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(2, 1, epoch=epoch)
    assert led.high_watermark == 0
    led.fetch(3, 1, epoch=epoch)
    assert led.controller.asked == []


async def test_a_proposal_says_with_which_epoch_each_member_has_fetched(open_led: Opening) -> None:
    """KIP-903."""
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(3, 1)
    (proposal,) = led.controller.proposals
    assert [tuple(member) for member in proposal.change.isr] == [(1, 10), (2, -1), (3, 30)]
    assert (proposal.change.leader_epoch, proposal.change.partition_epoch) == (0, 1)


async def test_a_broker_without_a_replica_is_refused(open_led: Opening) -> None:
    led = open_led()
    for broker in (1, 7):
        with pytest.raises(NotLeaderOrFollower):
            led.role.check_follower(broker)
        with pytest.raises(UnknownLeaderEpoch):
            led.role.check_follower(broker, 0)
    led.role.check_follower(2, 0)


@pytest.mark.parametrize("refusal", [OperationNotAttempted, IneligibleReplica])
async def test_after_a_refusal_of_what_was_surely_not_applied_the_old_set_counts(
    open_led: Opening, refusal: type[StrandlineError]
) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(3, 1)
    led.fetch(2, 1)
    led.append()
    led.clock.move(LAG + 1)
    led.fetch(2, 2)
    assert led.high_watermark == 1
    led.controller.proposals.pop().answered(refusal("No."))
    assert led.high_watermark == 2


@pytest.mark.parametrize("refusal", [FencedLeaderEpoch, InvalidUpdateVersion])
async def test_after_any_other_refusal_the_metadata_decides(open_led: Opening, refusal: type[StrandlineError]) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(3, 1)
    led.controller.proposals.pop().answered(refusal("No."))
    led.append()
    led.clock.move(LAG + 1)
    led.fetch(2, 2)
    assert led.high_watermark == 1
    led.fetch(3, 1)
    assert led.controller.asked == [], "it is still pending"
    led.follow(isr=(1, 2))
    assert led.high_watermark == 2


async def test_an_answer_that_metadata_has_overtaken_has_no_effect(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(3, 1)
    (proposal,) = led.controller.proposals
    led.follow(isr=(1,))
    assert not proposal.is_wanted
    proposal.answered(image(isr=(1, 2, 3), replicas=ALL, version=1))
    assert led.partition.isr == (1,)


async def test_an_answer_after_the_end_of_the_leadership_has_no_effect(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append()
    led.fetch(3, 1)
    led.follow(isr=(1, 2), leader=2, next_epoch=True)
    assert not led.controller.proposals[0].is_wanted
    led.accept()
    assert led.partition.isr == (1, 2)


async def test_a_controller_that_is_busy_with_the_partition_is_asked_again(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.controller.is_busy = True
    led.fetch(3, 0)
    led.controller.is_busy = False
    led.fetch(3, 0)
    assert led.controller.asked == [(1, 2, 3)]


async def test_below_min_isr_the_high_watermark_stands_still(open_led: Opening) -> None:
    led = open_led(isr=(1, 2), min_isr=2)
    (waiting,) = led.append()
    led.follow(isr=(1,))
    assert (led.high_watermark, waiting) == (0, [])
    with pytest.raises(NotEnoughReplicas):
        led.append()
    led.fetch(2, 1)
    led.accept()
    assert (led.high_watermark, waiting) == (1, [None])


async def test_a_duplicate_waits_for_its_records_again(open_led: Opening) -> None:
    led = open_led(isr=(1, 2), min_isr=2)
    told: list[StrandlineError | None] = []
    for _ in range(2):
        records = batch(b"x", producer_id=5, sequence=0)
        appended = led.partition.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=told.append))
        assert not appended.is_done
    led.fetch(2, 1)
    assert (led.end, told) == (1, [None, None])
    led.follow(isr=(1,))
    records = batch(b"x", producer_id=5, sequence=0)
    with pytest.raises((NotEnoughReplicas, NotEnoughReplicasAfterAppend)):
        led.partition.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=told.append))


async def test_the_low_watermark_is_that_of_every_replica_on_a_broker_in_service(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.append(3)
    led.fetch(2, 3)
    led.partition.delete_records(2)
    assert led.role.low_watermark == -1
    told: list[StrandlineError | None] = []
    assert not led.role.wait_deleted(2, told.append)
    led.fetch(2, 3, log_start=2)
    assert led.role.low_watermark == -1
    led.brokers.image = registered({1: 10, 2: 20, 3: 30}, fenced=(3,))
    led.role.check_in_sync_set()
    assert (told, led.role.low_watermark) == ([None], 2)


async def test_who_waits_for_deletion_is_told_when_leadership_ends(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    told: list[StrandlineError | None] = []
    led.append(1)
    assert not led.role.wait_deleted(1, told.append)
    led.follow(isr=(1, 2), next_epoch=True)
    assert told == []
    led.follow(isr=(1, 2), leader=2, next_epoch=True)
    assert [type(error) for error in told] == [NotLeaderOrFollower]


async def test_a_follower_whose_log_directory_has_failed_does_not_join_and_holds_nothing_up(open_led: Opening) -> None:
    """Its broker goes on, so the replica looks as if it would be back at once."""
    led = open_led()
    led.append()
    led.fetch(2, 1)
    led.fetch(3, 0)
    failed = UUID(int=4711)
    partition = image(isr=(1, 2), replicas=ALL).in_directory(3, failed)
    brokers = registered({1: 10, 2: 20, 3: 30})
    topic = TopicImage("t", led.partition.topic_id, (partition,))
    led.brokers.image = MetadataImage(
        brokers={**brokers.brokers, 3: replace(brokers.brokers[3], failed_log_dirs=(failed,))},
        topics_by_id={topic.topic_id: topic},
    )
    led.follow(isr=(1, 2))
    assert led.high_watermark == 1
    led.fetch(3, 1)
    assert led.controller.asked == []


async def test_one_that_was_about_to_join_holds_the_high_watermark_up_no_longer_than_it_may(open_led: Opening) -> None:
    led = open_led(isr=(1, 2))
    led.controller.is_busy = True
    led.fetch(3, 0)
    answers = led.append()
    led.fetch(2, 1)
    assert led.high_watermark == 0
    led.clock.move(LAG + 1)
    led.fetch(2, 1)
    assert answers == [[]], "the fetch brings nothing new"
    led.role.check_in_sync_set()
    assert (led.high_watermark, answers) == (1, [[None]])


async def test_followers_may_have_cut_off_what_they_had_while_another_broker_led(open_led: Opening) -> None:
    """The metadata of several epochs is read at once: this broker does not see that it did not lead meanwhile."""
    led = open_led()
    led.append(3)
    led.fetch(2, 1)
    led.fetch(3, 3)
    led.epoch += 1  # broker 2 led, and broker 3 followed it
    led.follow(isr=ALL, next_epoch=True)
    led.fetch(2, 3)
    assert led.high_watermark == 1
    led.fetch(3, 1)
    assert led.high_watermark == 1
    led.fetch(3, 3)
    assert led.high_watermark == 3


async def test_what_followers_have_is_known_in_the_next_epoch_of_the_same_leader(open_led: Opening) -> None:
    led = open_led()
    led.append(3)
    led.fetch(2, 1)
    led.fetch(3, 3)
    led.follow(isr=ALL, next_epoch=True)
    led.fetch(2, 3)
    assert led.high_watermark == 3
