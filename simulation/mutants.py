"""Rules that are wrong on purpose, each of which has cost other systems records. The simulation has to find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from strandline.metadata.plans import isr, membership
from strandline.metadata.plans.elections import KEPT_EVERYTHING
from strandline.replication import ReplicaBrokers, in_sync_set, leader, partition
from strandline.replication.fetching import state
from strandline.replication.followers import Follower
from strandline.replication.in_sync_set import InSyncSet
from strandline.server.handlers.fetch import places


class Change(NamedTuple):
    """Another value in the place of a rule."""

    owner: Any
    name: str
    wrong: Any


def _cut_at_the_high_watermark(leaders: Any, end_of_epoch: Any, *, log_end: int, high_watermark: int) -> int:
    return min(high_watermark, log_end)


def _fetched_by_anyone(
    in_sync: InSyncSet, follower: Follower, broker_epoch: int, offset: int, log_start: int, end: int
) -> bool:
    registered = in_sync._environment.brokers.epoch_of(follower.broker)
    follower.fetched(offset, log_start, end, registered, in_sync._clock.monotonic())
    if in_sync.pending is None and follower.broker not in in_sync.committed:
        in_sync._propose_to_join(follower)
    return True


MUTANTS: Final[Mapping[str, tuple[Change, ...]]] = {
    "the high watermark covers the committed in-sync set only": (
        Change(InSyncSet, "maximal", InSyncSet.committed),
        Change(InSyncSet, "_is_about_to_join", lambda in_sync, follower, end: False),
    ),
    "a follower cuts its log at its high watermark": (Change(state, "end_in_common", _cut_at_the_high_watermark),),
    "a follower does not cut its log": (Change(state, "end_in_common", lambda *_, log_end, **__: log_end),),
    "a leader does not compare epochs": (Change(places, "diverging_epoch", lambda served, entry: None),),
    "earlier incarnations of a follower are believed": (
        Change(InSyncSet, "fetched", _fetched_by_anyone),
        Change(ReplicaBrokers, "is_eligible", lambda brokers, broker, epoch, topic_id, partition: True),
        Change(isr, "_check_member", lambda image, partition, member: None),
    ),
    "a follower joins before it has what earlier leaders committed": (
        Change(in_sync_set, "may_join", lambda end, *, high_watermark, epoch_start: end >= high_watermark),
    ),
    "records are committed by fewer than min.insync.replicas": (
        Change(leader, "is_under_min_isr", lambda *_: False),
        Change(partition, "is_under_min_isr", lambda *_: False),
    ),
    "a new leader tells at once where the log ends": (
        Change(leader.LeaderRole, "has_caught_up", property(lambda role: True)),
    ),
    "a machine that has lost its power stays eligible": (
        Change(membership, "returned_of", lambda known, broker: lambda partition: KEPT_EVERYTHING),
    ),
}


@contextmanager
def applied(name: str) -> Iterator[None]:
    """The rule is wrong as long as the block lasts."""
    before = [(change.owner, change.name, vars(change.owner)[change.name]) for change in MUTANTS[name]]
    for change in MUTANTS[name]:
        setattr(change.owner, change.name, change.wrong)
    try:
        yield
    finally:
        for owner, attribute, right in before:
            setattr(owner, attribute, right)
