"""A cluster under measurement: nodes that are started, asked, killed, suspended and stopped in the same way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from bench.cluster.view import Shown, Unanswered, View
from bench.process import ProcessFailed
from bench.systems import Broker

T = TypeVar("T")

PATIENCE_SECONDS: Final = 600.0
# A broker that does not answer for so long is asked again: it may be suspended.
_LOOK_SECONDS: Final = 5.0
# A first look after this time, and then less and less often: what takes long need not be known to the millisecond.
_STEP_SECONDS: Final = 0.01
_MOST_STEP_SECONDS: Final = 0.2
_STEP_SHARE: Final = 0.05


class ClusterFailed(RuntimeError):
    """The cluster has not come to the state that a measurement needs."""


class Cluster:
    """Brokers by node id. A block: inside it they run and know each other, leaving it stops them."""

    def __init__(self, name: str, brokers: Mapping[int, Broker], replicas: int) -> None:
        self.name, self.brokers, self.replicas = name, brokers, replicas

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def port(self, node_id: int) -> int:
        return int(self.brokers[node_id].bootstrap.rpartition(":")[2])

    def view(self, node_id: int, timeout: float = 120.0) -> View:
        """A connection to one broker by itself."""
        return View(self.port(node_id), timeout=timeout)

    # Life

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """All of them side by side: a node of a quorum answers only when most of them are there."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            for started in [pool.submit(broker.start) for broker in self.brokers.values()]:
                started.result()
        self.wait_alive()

    def stop(self) -> None:
        """With SIGKILL: nobody needs the data any more, and the last node of a quorum cannot leave cleanly."""
        for broker in self.brokers.values():
            with suppress(ProcessFailed):  # it was never started
                broker.process.kill()

    def kill(self, node_id: int) -> None:
        self.brokers[node_id].process.kill()

    def suspend(self, node_id: int) -> None:
        os.kill(self.brokers[node_id].process.pid, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        os.kill(self.brokers[node_id].process.pid, signal.SIGCONT)

    # What it costs

    def cpu_by_node(self) -> dict[int, float]:
        """Seconds of processor time so far."""
        return {node_id: broker.process.usage().cpu_seconds for node_id, broker in self.brokers.items()}

    def cpu_of_database(self) -> float:
        """What the nodes need beside their own processes."""
        return 0.0

    def cpu_seconds(self) -> float:
        """Everything: all nodes, and their database."""
        return sum(self.cpu_by_node().values()) + self.cpu_of_database()

    # What it shows

    def controller(self) -> int:
        """The active controller, as one of the brokers has it from the controller itself."""
        return _wait_for(self._controller, "an active controller")

    def _controller(self) -> int | None:
        for node_id in self.brokers:
            try:
                with self.view(node_id, _LOOK_SECONDS) as view:
                    found = view.controller()
            except (OSError, Unanswered):
                continue
            if found in self.brokers:
                return found
        return None

    def topic(self, name: str, node_id: int) -> list[Shown]:
        """As one broker shows it; nothing where it does not answer."""
        try:
            with self.view(node_id, _LOOK_SECONDS) as view:
                return view.topic(name)
        except OSError:
            return []

    def ends(self, topic: str) -> list[int]:
        """The offset that follows the last record of each partition, as its leader has it."""
        (first, *_) = self.brokers
        found = []
        for number, one in enumerate(self.topic(topic, first)):
            with self.view(one.leader) as view:
                found.append(view.end(topic, number))
        return found

    def wait_alive(self) -> None:
        """Until every broker takes all of them for alive."""
        _wait_for(
            lambda: all(self._alive(node_id) == {*self.brokers} for node_id in self.brokers),
            f"brokers {', '.join(map(str, self.brokers))} of {self.name} to be alive",
        )

    def _alive(self, node_id: int) -> set[int]:
        try:
            with self.view(node_id, _LOOK_SECONDS) as view:
                return view.alive()
        except OSError:
            return set()

    def wait_whole(self, topics: Mapping[str, int]) -> None:
        """Until every broker shows all partitions of these topics led, and all their replicas in sync."""

        def is_whole(name: str, partitions: int) -> bool:
            return all(_is_whole(self.topic(name, node_id), partitions) for node_id in self.brokers)

        for name, partitions in topics.items():
            _wait_for(partial(is_whole, name, partitions), f"all replicas of {name} to be in sync")

    # What it does

    def create(self, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create topics, one request for each: Kafka limits what one of them creates. All replicas are in sync then."""
        with self.view(next(iter(self.brokers))) as view:
            for name, partitions in topics.items():
                view.create(name, partitions, self.replicas, config or {})
        self.wait_whole(topics)

    def delete(self, name: str) -> None:
        with self.view(next(iter(self.brokers))) as view:
            view.delete(name)

    def prefer(self, topic: str) -> None:
        """Spread the leaders again: each partition is led by the first of its replicas when this returns."""
        (node_id, *_) = self.brokers
        with self.view(node_id) as view:
            moved = [number for number, one in enumerate(view.topic(topic)) if not one.is_led_as_preferred]
            if moved:
                view.prefer(topic, moved)
        _wait_for(
            lambda: all(self._is_as_preferred(topic, node_id) for node_id in self.brokers),
            f"the preferred leaders of {topic}",
        )

    def _is_as_preferred(self, topic: str, node_id: int) -> bool:
        shown = self.topic(topic, node_id)
        return bool(shown) and all(one.is_led_as_preferred for one in shown)


def _is_whole(shown: list[Shown], partitions: int) -> bool:
    return len(shown) == partitions and all(one.is_whole for one in shown)


def _wait_for(look: Callable[[], T | None], what: str) -> T:
    began = time.perf_counter()
    while not (found := look()):
        waited = time.perf_counter() - began
        if waited > PATIENCE_SECONDS:
            raise ClusterFailed(f"Waited {PATIENCE_SECONDS:g} s in vain for {what}.")
        time.sleep(min(max(waited * _STEP_SHARE, _STEP_SECONDS), _MOST_STEP_SECONDS))
    return found


def revive(cluster: Cluster, node_id: int) -> None:
    """Have a broker alive again, whatever was done to it. Raises ProcessFailed."""
    broker = cluster.brokers[node_id]
    if not broker.process.is_running:
        broker.start()
    if not broker.process.is_running:
        raise ProcessFailed(f"Broker {node_id} of {cluster.name} ended by itself.\n{broker.process.log_tail()}")
    cluster.wait_alive()
