"""One member on its way to its target, step by step."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from strandline.coordinators.groups.consumer.member import ConsumerMember, ReconciliationState
from strandline.coordinators.groups.consumer.reconciliation import Target, reconcile
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.errors import FencedMemberEpoch

A, B = uuid.UUID(int=1), uuid.UUID(int=2)
STABLE = ReconciliationState.STABLE
UNREVOKED = ReconciliationState.UNREVOKED_PARTITIONS
UNRELEASED = ReconciliationState.UNRELEASED_PARTITIONS


def member(
    epoch: int, *numbers: int, state: ReconciliationState = STABLE, revokes: tuple[int, ...] = ()
) -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        epoch=epoch,
        previous_epoch=epoch,
        state=state,
        assigned={A: dict.fromkeys(numbers, epoch)} if numbers else {},
        pending_revocation={A: dict.fromkeys(revokes, epoch)} if revokes else {},
    )


def step(
    before: ConsumerMember,
    epoch: int,
    *numbers: int,
    owned: Partitions | None = None,
    taken: tuple[int, ...] = (),
    subscribed: tuple[uuid.UUID, ...] = (A,),
    changed: bool = False,
) -> ConsumerMember:
    """`taken` are partitions of A that others own."""
    mine = {*before.assigned.get(A, ()), *before.pending_revocation.get(A, ())}
    return reconcile(
        before,
        Target(epoch=epoch, partitions={A: frozenset(numbers)} if numbers else {}, subscribed=frozenset(subscribed)),
        owned=owned,
        is_owned_by_anyone=lambda topic_id, number: topic_id == A and (number in taken or number in mine),
        subscription_changed=changed,
    )


def test_nothing_to_do() -> None:
    before = member(5, 1, 2)
    assert step(before, 5, 1, 2) is before


def test_a_new_member_takes_what_is_free() -> None:
    after = step(member(0), 5, 1, 2)
    assert (after.epoch, after.previous_epoch, after.state) == (5, 0, STABLE)
    assert after.assigned == {A: {1: 5, 2: 5}}


def test_partitions_keep_the_epoch_in_which_they_were_assigned() -> None:
    assert step(member(4, 1), 5, 1, 2).assigned == {A: {1: 4, 2: 5}}


def test_a_member_gives_up_before_it_takes_and_keeps_its_epoch_meanwhile() -> None:
    revoking = step(member(4, 1, 2), 5, 2, 3)
    assert (revoking.epoch, revoking.state) == (4, UNREVOKED)
    assert revoking.assigned == {A: {2: 4}}
    assert revoking.pending_revocation == {A: {1: 4}}
    assert step(revoking, 5, 2, 3) is revoking, "the client has not said what it owns"
    assert step(revoking, 5, 2, 3, owned={A: frozenset({1, 2})}) is revoking, "the client still owns it"
    done = step(revoking, 5, 2, 3, owned={A: frozenset({2})})
    assert (done.epoch, done.state, done.pending_revocation) == (5, STABLE, {})
    assert done.assigned == {A: {2: 4, 3: 5}}


def test_a_client_that_has_given_up_already_does_not_wait() -> None:
    after = step(member(4, 1, 2), 5, 2, owned={A: frozenset({2})})
    assert (after.epoch, after.state, after.assigned) == (5, STABLE, {A: {2: 4}})


def test_partitions_of_others_are_waited_for() -> None:
    waiting = step(member(4, 1), 5, 1, 2, 3, taken=(2, 3))
    assert (waiting.epoch, waiting.state, waiting.assigned) == (5, UNRELEASED, {A: {1: 4}})
    some = step(waiting, 5, 1, 2, 3, taken=(3,))
    assert (some.state, some.assigned) == (UNRELEASED, {A: {1: 4, 2: 5}})
    every = step(some, 5, 1, 2, 3)
    assert (every.state, every.assigned) == (STABLE, {A: {1: 4, 2: 5, 3: 5}})


def test_a_newer_target_is_followed_while_waiting() -> None:
    waiting = step(member(4, 1), 5, 1, 2, taken=(2,))
    after = step(waiting, 6, 1, taken=(2,))
    assert (after.epoch, after.state, after.assigned) == (6, STABLE, {A: {1: 4}})


def test_what_the_member_itself_gave_up_is_free_for_it() -> None:
    revoking = step(member(4, 1, 2), 5, 2)
    after = step(revoking, 6, 1, 2, owned={A: frozenset({2})})
    assert (after.epoch, after.state, after.assigned) == (6, STABLE, {A: {1: 6, 2: 4}})


def test_after_a_revocation_the_member_can_have_more_to_give_up() -> None:
    revoking = step(member(4, 1, 2, 3), 5, 2, 3)
    again = step(revoking, 7, 3, owned={A: frozenset({2, 3})})
    assert (again.epoch, again.state) == (4, UNREVOKED)  # seen in Kafka 4.3.1: the epoch stays until all is given up
    assert (again.assigned, again.pending_revocation) == ({A: {3: 4}}, {A: {2: 4}})


def test_a_topic_that_is_not_subscribed_any_more_goes_at_once() -> None:
    before = member(5, 1, 2)
    after = step(before, 5, 1, 2, subscribed=(B,), changed=True, owned={A: frozenset({1, 2})})
    assert (after.epoch, after.state, after.assigned) == (5, UNREVOKED, {})
    assert after.pending_revocation == {A: {1: 5, 2: 5}}
    released = step(before, 5, 1, 2, subscribed=(B,), changed=True, owned={})
    assert (released.state, released.assigned, released.pending_revocation) == (STABLE, {}, {})
    assert step(before, 5, 1, 2, changed=True) is before


def test_revocations_by_subscription_do_not_run_ahead_of_the_target() -> None:
    revoking = step(member(5, 1), 5, 1, subscribed=(B,), changed=True, owned={A: frozenset({1})})
    assert step(revoking, 5, 1, subscribed=(B,), owned={}).epoch == 5


def test_a_state_of_a_newer_broker_fences_until_the_client_owns_nothing() -> None:
    strange = replace(member(5, 1), state=ReconciliationState.UNKNOWN)
    for owned in (None, {A: frozenset({1})}):
        with pytest.raises(FencedMemberEpoch, match="rejoin"):
            step(strange, 6, 1, owned=owned)
    assert step(strange, 6, 1, owned={}).epoch == 6
