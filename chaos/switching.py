"""A tiered topic that becomes diskless in the middle of the run, faults or not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from confluent_kafka import KafkaException
from tests.clients.two_brokers import BrokerCluster
from tests.crash import switching
from tests.waiting import wait_until

from chaos.history import Fault, Trouble
from chaos.stage import Stage
from chaos.values import copy_topic, list_topic

SWITCHED = "switched"
# Segments that hold the largest batch, fill within a minute or two, and leave the disk when they are copied: there is
# something in all three places.
HISTORY: Mapping[str, str] = {
    **switching.HISTORY,
    "internal.segment.bytes": "1100000",
    "local.retention.bytes": "2000000",
}
TOPICS = (list_topic(SWITCHED), copy_topic(SWITCHED))
SWITCH_SECONDS = 120.0


def switch(stage: Stage, cluster: BrokerCluster, *, after: float) -> None:
    """Wait, then ask for the switch until somebody agrees; whether it ends is seen at the end of the run."""
    stage.stop.wait(max(0.0, after - stage.now))
    for topic in TOPICS:
        wait_until(partial(_is_requested, cluster, topic), within=SWITCH_SECONDS, what=f"the switch of {topic}")
        stage.recorder.write(Fault(at=stage.now, kind="switch to diskless", target=topic, seconds=0.0))


def _is_requested(cluster: BrokerCluster, topic: str) -> bool:
    for broker in cluster.brokers.values():
        try:
            switching.request_switch(broker, topic)
        except KafkaException:
            continue  # the broker or the database is away: the request may have been heard, and is made again
        return True
    return False


def wait_switched(stage: Stage, cluster: BrokerCluster) -> None:
    """Until the topics are what they were to become; write down if that does not happen."""
    for topic in TOPICS:
        try:
            wait_until(
                partial(_is_switched, cluster, topic), within=SWITCH_SECONDS, step=0.5, what=f"{topic} to switch"
            )
        except AssertionError as error:
            found = [switching.partitions_of(broker, topic) for broker in cluster.brokers.values()]
            text = f"{error}: {found}"
            stage.recorder.write(Trouble(at=stage.now, what="a switch did not end", text=text))


def _is_switched(cluster: BrokerCluster, topic: str) -> bool:
    found = switching.partitions_of(next(iter(cluster.brokers.values())), topic)
    return bool(found) and all(one["state"] in switching.DONE for one in found)
