"""When a follower was caught up, by Kafka's rule, also while it only says that it still is where it was."""

from __future__ import annotations

from strandline.replication.followers import NEVER, UNKNOWN_EPOCH, Follower, FollowerVisits


def follower_at(offset: int, leader_end: int, now: float) -> Follower:
    follower = Follower(2)
    follower.starts_anew(0.0, 0, is_in_sync=True, was_led_here=False)
    follower.fetched(offset, 0, leader_end, 20, now)
    return follower


def test_nothing_is_known_of_a_follower_before_it_fetches() -> None:
    follower = Follower(2)
    assert (follower.end, follower.log_start, follower.broker_epoch) == (-1, -1, UNKNOWN_EPOCH)
    assert follower.caught_up_at == NEVER


def test_one_in_sync_has_the_whole_time_from_the_beginning_of_the_leadership_on() -> None:
    inside, outside = Follower(2), Follower(3)
    inside.starts_anew(5.0, 9, is_in_sync=True, was_led_here=False)
    outside.starts_anew(5.0, 9, is_in_sync=False, was_led_here=False)
    assert (inside.caught_up_at, outside.caught_up_at) == (5.0, NEVER)


def test_it_is_caught_up_when_it_fetches_at_the_end() -> None:
    assert follower_at(10, 10, 7.0).caught_up_at == 7.0


def test_it_was_caught_up_at_the_fetch_before_if_it_has_all_that_the_leader_had_then() -> None:
    follower = follower_at(5, 10, 7.0)
    assert follower.caught_up_at == 0.0
    follower.fetched(10, 0, 15, 20, 8.0)
    assert follower.caught_up_at == 7.0
    follower.fetched(12, 0, 20, 20, 9.0)
    assert follower.caught_up_at == 7.0, "15 was the end at 8"
    follower.fetched(19, 0, 22, 20, 10.0)
    assert follower.caught_up_at == 7.0, "20 was the end at 9"
    follower.fetched(22, 0, 30, 20, 11.0)
    assert follower.caught_up_at == 10.0


def test_one_that_rests_is_caught_up_at_each_request_until_there_are_records() -> None:
    follower, visits = follower_at(10, 10, 7.0), FollowerVisits()
    follower.rests(visits)
    visits.at = 60.0
    assert follower.caught_up_at == 60.0
    follower.wakes()  # there are records
    visits.at = 61.0  # a request that is about other partitions
    assert follower.caught_up_at == 60.0
    follower.fetched(10, 0, 12, 20, 62.0)
    assert follower.caught_up_at == 60.0
    follower.fetched(12, 0, 14, 20, 63.0)
    assert follower.caught_up_at == 62.0


def test_a_session_that_ends_does_not_take_time_back() -> None:
    follower = follower_at(10, 10, 7.0)
    follower.rests(FollowerVisits())
    follower.wakes()
    assert follower.caught_up_at == 7.0


def test_what_is_known_stays_known_through_the_epochs_of_one_leader() -> None:
    follower = follower_at(10, 10, 7.0)
    follower.starts_anew(20.0, 12, is_in_sync=True, was_led_here=True)
    assert (follower.end, follower.broker_epoch, follower.caught_up_at) == (10, 20, 20.0)
    follower.fetched(11, 0, 12, 20, 21.0)
    assert follower.caught_up_at == 20.0
    follower.starts_anew(30.0, 12, is_in_sync=True, was_led_here=False)
    assert (follower.end, follower.broker_epoch) == (-1, UNKNOWN_EPOCH)
