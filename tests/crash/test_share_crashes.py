"""The broker dies at every step of a share group; afterwards members go on, and `share_ledger` judges what they get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tests.broker import TIERS, BrokerProcess, running_broker
from tests.waiting import wait_until
from tests.wirelevel.raw import batch, connected, create_topic
from tests.wirelevel.raw import produce as produce_batch
from tests.wirelevel.share_ledger import ShareLedger, ShareWorker, work_to_the_end, work_until
from tests.wirelevel.share_member import Failed, RawShareMember, connect, set_group_config

SECONDS = 60.0
SIGKILLED = -9
PARTITIONS = 2
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "7",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.delivery.count.limit": "4",
}
BEGINNING = (
    "share.group.before_heartbeat",
    "share.group.after_heartbeat",
    "share.group.before_creation",
    "share.state.before_snapshot:1",
    "share.state.before_snapshot:2",
    "share.state.after_snapshot:1",
    "share.group.after_creation",
    "share.group.after_recording",
)
WORKING = (
    "share.delivery.after_acquire:3",
    "share.delivery.before_store:4",
    "share.state.before_update:5",
    "share.state.after_update:5",
    "share.delivery.after_store:4",
    "share.state.before_snapshot",
    "share.state.after_snapshot",
    "share.group.before_heartbeat:5",
    "share.group.after_heartbeat:5",
)


class SharedTopic:
    """A broker, a topic, and two members of a group."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.ledger = ShareLedger(limit=4)
        self.workers = [
            ShareWorker(RawShareMember(lambda: [broker.bootstrap], "sharers", "topic", f"member-{n}"), self.ledger)
            for n in range(2)
        ]
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "topic", partitions=PARTITIONS)
        with connect(broker.bootstrap) as client:
            set_group_config(client, "sharers", share_auto_offset_reset="earliest")

    def write(self, records: int) -> None:
        """More to deliver, in small batches."""
        with connected(self.broker.bootstrap) as connection:
            for number in range(records // 5):
                values = self.ledger.values(number % PARTITIONS, 5)
                assert produce_batch(connection, "topic", batch(*values), partition=number % PARTITIONS)[0] == 0

    def die_at(self, place: str) -> None:
        """Start the broker, which is dead, and let the members work until it dies at a place."""
        self.broker.environment = {ENVIRONMENT_VARIABLE: place}
        self.broker.start()
        work_until(self.workers, lambda: not self.broker.is_running, within=SECONDS, what=place)
        assert self.broker.wait() == SIGKILLED
        self.broker.environment = {}

    def close(self) -> None:
        for worker in self.workers:
            worker.member.close()


@pytest.fixture(params=["classic", "diskless"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedTopic]:
    with running_broker(tmp_path / "data", {**SETTINGS, **TIERS[request.param]}) as broker:
        world = SharedTopic(broker)
        try:
            yield world
        finally:
            world.close()


def test_the_broker_dies_at_every_step_of_a_new_group(shared: SharedTopic) -> None:
    shared.write(60)
    shared.broker.kill()
    for place in BEGINNING:
        shared.die_at(place)
    shared.broker.start()
    work_to_the_end(shared.workers, within=SECONDS)


def test_the_broker_dies_at_every_step_of_a_delivery(shared: SharedTopic) -> None:
    shared.write(60)
    for place in WORKING:
        shared.broker.kill()
        shared.broker.start()
        shared.write(60)
        shared.broker.kill()
        shared.die_at(place)
    shared.broker.start()
    work_to_the_end(shared.workers, within=SECONDS)


@pytest.mark.long
@pytest.mark.parametrize("place", [place.split(":")[0] for place in WORKING])
def test_the_broker_dies_often_at_one_step(shared: SharedTopic, place: str) -> None:
    shared.write(200)
    for visit in (1, 2, 3, 4, 6, 9):
        shared.broker.kill()
        shared.broker.start()
        shared.write(100)
        shared.broker.kill()
        shared.die_at(f"{place}:{visit}")
    shared.broker.start()
    work_to_the_end(shared.workers, within=SECONDS)


@pytest.mark.long
def test_the_broker_dies_at_any_moment(shared: SharedTopic) -> None:
    for number in range(12):
        shared.write(200)
        goal = len(shared.ledger.settled) + 17 * (number % 5)
        work_until(shared.workers, lambda at=goal: len(shared.ledger.settled) > at, within=SECONDS, what="work")  # type: ignore[misc]
        shared.broker.kill()
        shared.broker.start()
    work_to_the_end(shared.workers, within=SECONDS)


def test_a_group_that_begins_at_the_end_keeps_that_place(shared: SharedTopic) -> None:
    """What comes after its first fetch belongs to it, whether anybody has acknowledged anything or not."""
    with connect(shared.broker.bootstrap) as client:
        set_group_config(client, "sharers", share_auto_offset_reset="latest")
    shared.write(60)
    before = dict(shared.ledger.ends)
    [first, second] = shared.workers

    def is_placed() -> bool:
        return first.check_starts() and first.member.offsets() == {at: (end, 0) for at, end in before.items()}

    shared.ledger.said |= {(at, offset) for at, end in before.items() for offset in range(end)}  # never meant for it
    work_until([first, second], is_placed, within=SECONDS, what="the group to have a place in each partition")
    shared.write(20)
    wait_until(lambda: first.member.heartbeat() is ErrorCode.NONE and first.member.fetch()[0], what="a delivery")
    shared.broker.kill()
    shared.broker.start()
    shared.write(20)
    ends = {(at, offset) for at, end in shared.ledger.ends.items() for offset in range(before[at], end)}
    work_until([first, second], lambda: all(map(shared.ledger.may_be_settled, ends)), within=SECONDS, what="the rest")
    assert set(shared.ledger.delivered) == ends


@pytest.mark.parametrize("shared", ["classic"], indirect=True)
@pytest.mark.parametrize("is_whole", [False, True], ids=["offsets", "group"])
@pytest.mark.parametrize("place", ["before_tombstone:1", "after_tombstone:1", "before_tombstone:2"])
def test_the_broker_dies_while_a_group_is_forgotten(shared: SharedTopic, is_whole: bool, place: str) -> None:
    """Asked for again, it is gone; a group of that name begins at the beginning."""
    shared.write(40)
    work_to_the_end(shared.workers, within=SECONDS)
    for worker in shared.workers:
        worker.member.leave()
        worker.member.close()
    admin = shared.workers[0].member

    def forget() -> list[int]:
        if is_whole:
            request = DeleteGroupsRequest(groups_names=["sharers"])
            return [row.error_code for row in admin.ask_coordinator(ApiKey.DELETE_GROUPS, request).results]
        topic = DeleteShareGroupOffsetsRequestTopic(topic_name="topic")
        deletion = DeleteShareGroupOffsetsRequest(group_id="sharers", topics=[topic])
        answer = admin.ask_coordinator(ApiKey.DELETE_SHARE_GROUP_OFFSETS, deletion)
        return [answer.error_code, *(row.error_code for row in answer.responses)]

    shared.broker.kill()
    shared.broker.environment = {ENVIRONMENT_VARIABLE: f"share.state.{place}"}
    shared.broker.start()
    with pytest.raises(Failed):
        wait_until(lambda: not any(forget()), what="the broker to die")
    assert shared.broker.wait() == SIGKILLED
    shared.broker.environment = {}
    shared.broker.start()
    gone = {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}

    def is_forgotten() -> bool:
        try:
            return set(forget()) <= gone
        except Failed:
            return False

    wait_until(is_forgotten, what="the group to be forgotten")
    assert all(start == -1 for start, _ in admin.offsets().values())
    anew = ShareLedger(limit=4, ends=shared.ledger.ends)
    for worker in shared.workers:
        worker.ledger, worker.member.epoch = anew, 0
    work_to_the_end(shared.workers, within=SECONDS)
