"""Share groups whose partitions, share coordinators and group coordinators are on two brokers, which die and pause.

`share_ledger` judges every delivery. A classic partition, and a coordinator, waits for its broker; a diskless partition
is served by the other one meanwhile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.model import uuid_to_text
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.clients.two_brokers import SECONDS, BrokerCluster, produce, running_cluster
from tests.postgres import start_postgres
from tests.waiting import wait_until
from tests.wirelevel.share_ledger import ShareLedger, ShareWorker, work_to_the_end, work_until
from tests.wirelevel.share_member import (
    ACCEPT,
    SHARE_COORDINATOR,
    Answer,
    RawShareMember,
    connect,
    set_group_config,
)

GROUP_COORDINATOR = 0
TOPICS: Mapping[str, Mapping[str, str]] = {"classic": {}, "diskless": {"diskless.enable": "true"}}
KINDS = pytest.mark.parametrize("kind", list(TOPICS))
# Not as many as of groups: with equal numbers, the coordinator of a group says which one its partitions have.
STATE_PARTITIONS = 5
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": str(STATE_PARTITIONS),
    "share.coordinator.state.topic.replication.factor": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
}
_numbers = itertools.count(1)


class SharedTopics:
    """Topics of a cluster, and groups whose coordinators are where a test wants them."""

    def __init__(self, cluster: BrokerCluster) -> None:
        self.cluster = cluster
        self._members: list[RawShareMember] = []

    def topic(self, kind: str, partitions: int) -> str:
        name = f"shared-{next(_numbers)}"
        self.cluster.create(name, partitions=partitions, via=1, config=TOPICS[kind])
        return name

    def topic_on(self, kind: str, leader: int) -> str:
        """A topic of one partition, which this broker leads."""
        for _ in range(10):
            name = self.topic(kind, 1)
            if self.cluster.leaders(name, 1) == [leader]:
                return name
        raise AssertionError(f"broker {leader} leads nothing")

    def group(self, topic: str, *, group_on: int | None = None, states_on: int | None = None) -> str:
        """A group that begins at the beginning, whose coordinator, and that of its first partition, are as wanted."""
        with connect(self.cluster.brokers[1].bootstrap) as client:
            for _ in range(200):
                name = f"sharers-{next(_numbers)}"
                if group_on not in (None, self.coordinator(client, GROUP_COORDINATOR, name)):
                    continue
                key = f"{name}:{self.topic_id(topic)}:0"
                if states_on in (None, self.coordinator(client, SHARE_COORDINATOR, key)):
                    set_group_config(client, name, share_auto_offset_reset="earliest")
                    return name
        raise AssertionError("no group has such coordinators")

    @staticmethod
    def coordinator(client: Any, kind: int, key: str) -> int:
        def found() -> int | None:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            [answer] = client.request(ApiKey.FIND_COORDINATOR, request).coordinators
            return None if answer.error_code else answer.node_id + 1

        return wait_until(found, within=SECONDS, what=f"a coordinator of {key}") - 1

    def topic_id(self, topic: str) -> str:
        member = self.member("nobody", topic)
        member.leaders()
        return uuid_to_text(member.topic_id)

    def member(self, group: str, topic: str, *, first: int = 1) -> RawShareMember:
        """`first` is the broker that it asks first."""
        addresses = [self.cluster.brokers[first].bootstrap, self.cluster.brokers[3 - first].bootstrap]
        member = RawShareMember(lambda: addresses, group, topic, f"member-{next(_numbers)}")
        self._members.append(member)
        return member

    def workers(self, group: str, topic: str, ledger: ShareLedger) -> list[ShareWorker]:
        return [ShareWorker(self.member(group, topic, first=first), ledger) for first in (1, 2)]

    def write(self, topic: str, ledger: ShareLedger, records: int, *, partitions: int, via: int | None = None) -> None:
        rows = [ledger.values(partition, records) for partition in range(partitions)]
        values = [row[at] for at in range(records) for row in rows]
        bootstrap = self.cluster.bootstrap if via is None else self.cluster.brokers[via].bootstrap
        produce(bootstrap, topic, values, partitions=partitions)

    def close(self) -> None:
        for member in self._members:
            member.close()


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    settings = {**SETTINGS, "strandline.objects.url": f"file://{directory}/objects"}
    with running_cluster(directory, start_postgres().new_database(), settings=settings) as running:
        with connect(running.brokers[1].bootstrap) as client:
            for kind, key in ((GROUP_COORDINATOR, "g"), (SHARE_COORDINATOR, f"g:{uuid_to_text(UUID(int=1))}:0")):
                SharedTopics.coordinator(client, kind, key)
        for topic, partitions in (("__consumer_offsets", 4), ("__share_group_state", STATE_PARTITIONS)):
            running.wait_led(topic, partitions)
            assert set(running.leaders(topic, 1)) == {1, 2}, "created while both brokers are there"
        yield running


@pytest.fixture
def shared(shared_cluster: BrokerCluster) -> Iterator[SharedTopics]:
    """With both brokers alive, whatever the test before has done to them."""
    shared_cluster.revive()
    topics = SharedTopics(shared_cluster)
    yield topics
    topics.close()


@KINDS
@pytest.mark.parametrize("group_on", [1, 2])
def test_a_group_over_both_brokers(shared: SharedTopics, kind: str, group_on: int) -> None:
    topic, ledger = shared.topic(kind, 4), ShareLedger()
    assert set(shared.cluster.leaders(topic, 1)) == {1, 2}
    group = shared.group(topic, group_on=group_on, states_on=3 - group_on)
    shared.write(topic, ledger, 30, partitions=4)
    work_to_the_end(shared.workers(group, topic, ledger), within=SECONDS)


@KINDS
def test_a_broker_dies_and_comes_back(shared: SharedTopics, kind: str) -> None:
    """It leads partitions, and is the share coordinator of some of both brokers'."""
    topic, ledger = shared.topic(kind, 4), ShareLedger()
    group = shared.group(topic, group_on=1)
    workers = shared.workers(group, topic, ledger)
    shared.write(topic, ledger, 40, partitions=4)
    work_until(workers, lambda: len(ledger.settled) > 30, within=SECONDS, what="some records")
    shared.cluster.brokers[2].kill()
    work_until(workers[:1], lambda: shared.cluster.alive(1) == {1}, within=SECONDS, what="the broker to be gone")
    shared.cluster.brokers[2].start()
    shared.write(topic, ledger, 10, partitions=4)
    work_to_the_end(workers, within=SECONDS)


@pytest.mark.long
@pytest.mark.parametrize("place", ["before_update:9", "after_update:9", "before_snapshot:1", "after_snapshot:1"])
def test_a_share_coordinator_dies_while_it_writes(shared: SharedTopics, place: str) -> None:
    shared.cluster.brokers[2].stop()
    shared.cluster.brokers[2].environment = {ENVIRONMENT_VARIABLE: f"share.state.{place}"}
    shared.cluster.brokers[2].start()
    shared.cluster.wait_alive(1, 2)
    topic, ledger = shared.topic("classic", 4), ShareLedger()
    workers = shared.workers(shared.group(topic, group_on=1, states_on=2), topic, ledger)
    shared.write(topic, ledger, 60, partitions=4)
    work_until(workers, lambda: not shared.cluster.brokers[2].is_running, within=SECONDS, what=place)
    shared.cluster.brokers[2].environment = {}
    shared.cluster.brokers[2].start()
    work_to_the_end(workers, within=SECONDS)


def test_another_broker_delivers_diskless_records_while_the_leader_is_away(shared: SharedTopics) -> None:
    topic, ledger = shared.topic_on("diskless", 2), ShareLedger()
    group = shared.group(topic, group_on=1, states_on=1)
    workers = shared.workers(group, topic, ledger)
    shared.write(topic, ledger, 60, partitions=1)
    work_until(workers, lambda: len(ledger.settled) > 20, within=SECONDS, what="some records")
    shared.cluster.brokers[2].kill()
    shared.write(topic, ledger, 20, partitions=1, via=1)
    work_to_the_end(workers[:1], within=SECONDS)
    shared.cluster.brokers[2].start()
    shared.cluster.wait_alive(1, 2)
    shared.write(topic, ledger, 20, partitions=1)
    work_to_the_end(workers, within=SECONDS)


@KINDS
@pytest.mark.parametrize("states_on", [1, 2])
def test_a_leader_that_pauses_past_its_session_stores_nothing(shared: SharedTopics, kind: str, states_on: int) -> None:
    """Its members answer for records that it gave them before the pause; others may have settled these by then."""
    cluster = shared.cluster
    topic, ledger = shared.topic_on(kind, 2), ShareLedger()
    group = shared.group(topic, group_on=1, states_on=states_on)
    early, late = shared.workers(group, topic, ledger)
    shared.write(topic, ledger, 10, partitions=1)
    wait_until(lambda: early.member.heartbeat() is ErrorCode.NONE and early.member.assigned, what="an assignment")
    found = wait_until(lambda: early.member.fetch(max_wait_ms=1000)[0], within=SECONDS, what="a delivery")
    for one in found:
        ledger.note_delivery(one)
    with cluster.brokers[2].suspended():
        wait_until(lambda: cluster.alive(1) == {1}, within=SECONDS, what="the paused broker to be fenced")
        if kind == "diskless" and states_on == 1:
            late.member.addresses = early.member.addresses
            late.judge = lambda one: ACCEPT if one.offset < 5 else None
            work_until([late], lambda: len(ledger.settled) == 5, within=SECONDS, what="the stand-in to deliver")
    said: list[Answer] = [(one.partition, one.offset, ACCEPT) for one in found]
    ledger.note_answers(said)
    taken = early.member.acknowledge(said)
    if kind == "diskless" and states_on == 1:
        assert taken == [], "another leader has delivered these records since"
    ledger.note_taken(taken)
    cluster.wait_alive(1, 2)
    work_to_the_end([early, ShareWorker(late.member, ledger)], within=SECONDS)


@KINDS
def test_a_topic_that_is_deleted_and_created_again_begins_anew(shared: SharedTopics, kind: str) -> None:
    cluster = shared.cluster
    topic, ledger = shared.topic(kind, 4), ShareLedger()
    workers = shared.workers(shared.group(topic, group_on=1), topic, ledger)
    shared.write(topic, ledger, 20, partitions=4)
    work_until(workers, lambda: len(ledger.settled) > 30, within=SECONDS, what="some records")
    cluster.admin(1).delete_topics([topic])[topic].result(SECONDS)
    wait_until(lambda: all(topic not in cluster.topics(node_id) for node_id in (1, 2)), within=SECONDS)
    cluster.create(topic, partitions=4, via=2, config=TOPICS[kind])
    anew = ShareLedger()
    shared.write(topic, anew, 20, partitions=4)
    workers = [ShareWorker(worker.member, anew) for worker in workers]
    work_to_the_end(workers, within=SECONDS)
