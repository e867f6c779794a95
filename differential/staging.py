"""Brings the topics of the wanted kinds into the same state on both brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tests.wirelevel.transactional import wait_for_coordinator

from differential.administering import alter_broker, create, damage
from differential.places import Known
from differential.scene import QUIET_SECONDS, Scene
from differential.topics import Topic
from strandline.model import INT64_MAX

_QUICK_MS: Final = "100"
_CHECKPOINT_SECONDS: Final = 1.0
_HOURS: Final = "3600"
SETTINGS: Final[Mapping[str, str]] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": _QUICK_MS,
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "log.retention.check.interval.ms": _QUICK_MS,
    "log.initial.task.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": _QUICK_MS,
    "log.flush.start.offset.checkpoint.interval.ms": _QUICK_MS,
    "replica.high.watermark.checkpoint.interval.ms": _QUICK_MS,
    "inkless.retention.enforcement.interval.ms": _QUICK_MS,
    "inkless.file.cleaner.interval.ms": _QUICK_MS,
    "inkless.file.cleaner.retention.period.ms": "0",
    "inkless.migration.parallel.topics": "100",
    "inkless.tiering.max.segment.bytes": "30000",
    "inkless.tiering.min.segment.bytes": "1000",
    "remote.log.manager.copy.quota.window.size.seconds": _HOURS,
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "2",
    # No producer, transaction or record may become too old while a run goes on: it would in one broker first.
    "producer.id.expiration.ms": "864000000",
    "transaction.max.timeout.ms": "14400000",
}
"""Of both brokers. Whatever is done in the background is done soon, so that the end of it need not be waited for."""
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
WITHOUT_CACHE: Final[Mapping[str, str]] = {"inkless.consume.cache.max.bytes": "0"}
"""Every read of diskless records asks the control plane and the store: its size depends on the request alone."""

_COPY_QUOTA: Final = "remote.log.manager.copy.max.bytes.per.second"


class Stage:
    """The topics, and what is still to be done with them."""

    def __init__(self, scene: Scene, topics: Sequence[Topic], say: Callable[[str], None]) -> None:
        self.scene, self.topics = scene, topics
        self._say = say
        self._is_held = False

    def prepare(self) -> None:
        """Both brokers run, and are empty. Between two acts they are restarted."""
        self._create()
        played = {act for topic in self.topics for act, deeds in enumerate(topic.acts) if deeds}
        count = max(played, default=-1) + 1
        for act in range(count):
            for topic in self.topics:
                if not (topic.is_copied_in_part and act == 2):
                    self._play(topic, act)
            self._say(f"act {act + 1} of {count} is over")
            if act < count - 1:
                self.restart(losing=[topic for topic in self.topics if topic.loses] if act == 1 else [])
        self._hold_copies()

    def restart(self, *, losing: Sequence[Topic] = (), overrides: Mapping[str, str] = NO_SETTINGS) -> None:
        """SIGKILL to both, and a start, perhaps with other settings. Copies that were held go on.

        Log starts that are not in a checkpoint yet are lost, as in Kafka: both brokers get the time to write one.
        """
        scene = self.scene
        if self._is_held:
            self._limit_copies(INT64_MAX)
            self._is_held = False
        time.sleep(_CHECKPOINT_SECONDS)
        for side in scene.pair.sides:
            side.kill()
            for topic in losing:
                for place in topic.places:
                    damage(side, place, topic.loses)
        for side in scene.pair.sides:
            side.broker.overrides = overrides
            side.start()
        how = "".join(f" with {name}={value}" for name, value in overrides.items())
        scene.both([*scene.known], f"SIGKILL and start of both brokers{how}")
        for topic in losing:
            scene.both(topic.places, f"meanwhile the {topic.loses} of the replica was removed from the disk")
        self.serve()

    def serve(self) -> None:
        """Wait until everything is served, and learn how it stands."""
        if self.scene.known:
            for side in self.scene.pair.sides:
                with side.client() as client:
                    wait_for_coordinator(client, "any")
            self.scene.learn_epochs()
            self.scene.rest([*self.scene.known], quiet_seconds=3 * QUIET_SECONDS)

    def _create(self) -> None:
        for side in self.scene.pair.sides:
            with side.client() as client:
                for topic in self.topics:
                    create(client, side, topic.name, topic.partitions, topic.configs)
        for topic in self.topics:
            self.scene.known.update(
                {place: Known(is_stamped=topic.is_stamped, is_limited=topic.is_limited) for place in topic.places}
            )
            self.scene.quiet.update(topic.places if topic.is_quiet else ())
        self.serve()

    def _play(self, topic: Topic, act: int) -> None:
        for deed in topic.acts[act]:
            deed(self.scene, topic.places)

    def _hold_copies(self) -> None:
        """With a quota that lets one segment through and then none for hours."""
        held = [topic for topic in self.topics if topic.is_copied_in_part]
        if held:
            self.scene.rest([*self.scene.known], quiet_seconds=3 * QUIET_SECONDS)
            self._limit_copies(1)
            self._is_held = True
        for topic in held:
            self._play(topic, 2)

    def _limit_copies(self, bytes_per_second: int) -> None:
        for side in self.scene.pair.sides:
            with side.client() as client:
                alter_broker(client, {_COPY_QUOTA: str(bytes_per_second)})
