"""Members of a share group: what each is given is written down before it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer
from tests.wirelevel.share_member import set_group_config

from chaos.groups import deliver
from chaos.reading import reads_of
from chaos.stage import CALL_SECONDS, Stage, error_of
from chaos.values import SHARE_GROUP, list_topic
from strandline.wire.client import Client

SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "5000",
    "group.share.delivery.count.limit": "10",  # each answer that is lost counts as a delivery
}
_RELEASES = 0.05
_MEMBERSHIP_SECONDS = 40.0


def prepare_group(client: Client) -> None:
    """Have the group read all that is committed, from the beginning."""
    set_group_config(client, SHARE_GROUP, share_auto_offset_reset="earliest", share_isolation_level="read_committed")


def share(stage: Stage, name: str) -> None:
    """Take records, give one of twenty back, accept the others; leave and join again now and then."""
    dice = stage.dice(name)
    while not stage.stop.is_set():
        until = stage.now + dice.uniform(0.2, 1.0) * _MEMBERSHIP_SECONDS
        with _Member(stage, name) as member:
            while stage.now < until and not stage.stop.is_set() and member.take(lambda: dice.random() < _RELEASES):
                pass


class _Member:
    """One share consumer, from its beginning to its end."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": stage.bootstrap,
                "client.id": name,
                "group.id": SHARE_GROUP,
                "share.acknowledgement.mode": "explicit",
                "log_level": 0,
            }
        )
        self._consumer.subscribe([list_topic(tier) for tier in stage.tiers])

    def take(self, is_released: Callable[[], bool]) -> bool:
        """What is there now, which is then accepted or released. False if the member cannot go on."""
        self._stage.step("poll")
        try:
            messages = list(self._consumer.poll(0.5))
            deliver(self._stage, self._name, SHARE_GROUP, reads_of(self._stage, self._name, messages))
            for message in messages:
                if message.error() is None:
                    kind = AcknowledgeType.RELEASE if is_released() else AcknowledgeType.ACCEPT
                    self._consumer.acknowledge(message, kind)
            self._stage.step("commit_sync")
            self._consumer.commit_sync(CALL_SECONDS)  # what was not taken is delivered again
        except KafkaException as exception:
            error = error_of(exception)
            if error.fatal():
                self._stage.client_ended(self._name, self._stage.doing, error)
                return False
        return True

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._stage.step("close")
        with suppress(KafkaException):  # the broker is away: its session ends by itself
            self._consumer.close()
