"""How soon every broker shows a change, in a cluster that has thousands of partitions already.

Each broker is asked by itself, in turn, until the last one shows it; the clock starts when the request for the change
is sent. So a figure holds what the controller takes, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from bench.cluster.nodes import PATIENCE_SECONDS, Cluster, ClusterFailed, revive
from bench.cluster.view import NO_LEADER, View
from bench.measures import Measured

TOPIC_PARTITIONS: Final = 1_000
_SMALL: Final = "shown"
_BULK: Final = "shown-bulk"
_FEW: Final = 10
_STEP_SECONDS: Final = 0.001
_SETTING: Final = ("retention.ms", "86400000")


def propagation(cluster: Cluster, partitions: int, turns: int, bulk_partitions: int) -> dict[str, list[float]]:
    """Milliseconds of each change, by figure, `turns` samples of each (of large ones: one)."""
    for number in range(partitions // TOPIC_PARTITIONS):
        cluster.create({f"many-{number}": TOPIC_PARTITIONS})
    samples: dict[str, list[float]] = {}
    with ExitStack() as views:
        watch = _Watch(cluster, {node_id: views.enter_context(cluster.view(node_id)) for node_id in cluster.brokers})
        for turn in range(turns):
            for name, value in watch.small_changes(f"{_SMALL}-{turn}").items():
                samples.setdefault(name, []).append(value)
        for name, value in watch.large_changes(bulk_partitions).items():
            samples.setdefault(name, []).append(value)
    return samples


class _Watch:
    """Makes changes by way of the first broker and looks at all of them."""

    def __init__(self, cluster: Cluster, views: dict[int, View]) -> None:
        self._cluster, self._views = cluster, views
        self._first = views[min(views)]

    def small_changes(self, topic: str) -> Measured:
        name, value = _SETTING
        replicas = self._cluster.replicas
        measured = {
            "create": self._time(
                lambda: self._first.create(topic, _FEW, replicas, {}), lambda view: _led(view, topic) == _FEW
            ),
            "grow": self._time(lambda: self._first.grow(topic, 2 * _FEW), lambda view: _led(view, topic) == 2 * _FEW),
            "config": self._time(
                lambda: self._first.configure(topic, name, value), lambda view: view.config(topic, name) == value
            ),
        }
        self._first.delete(topic)
        return {f"cluster.shown.{name}": value for name, value in measured.items()}

    def large_changes(self, partitions: int) -> Measured:
        measured = {
            "bulk": self._time(
                lambda: self._first.create(_BULK, partitions, self._cluster.replicas, {}),
                lambda view: _led(view, _BULK) == partitions,
            )
        }
        if self._cluster.replicas > 1:  # with one replica leaders never move
            measured["elections"] = self._elections(partitions)
        measured["delete"] = self._time(lambda: self._first.delete(_BULK), lambda view: not view.topic(_BULK))
        return {f"cluster.shown.{name}": value for name, value in measured.items()}

    def _elections(self, partitions: int) -> float:
        """The last broker is restarted, and leads nothing; then it gets back what it prefers to lead."""
        node_id = max(self._views)
        self._cluster.wait_whole({_BULK: partitions})
        self._cluster.brokers[node_id].stop()
        self._cluster.brokers[node_id].start()
        self._views[node_id].close()  # the next question opens another connection
        revive(self._cluster, node_id)
        self._cluster.wait_whole({_BULK: partitions})
        moved = [number for number, one in enumerate(self._first.topic(_BULK)) if not one.is_led_as_preferred]
        if not moved:
            raise ClusterFailed(f"Broker {node_id} leads all that it prefers right after its restart.")
        return self._time(
            lambda: self._first.prefer(_BULK, moved),
            lambda view: all(one.is_led_as_preferred for one in view.topic(_BULK)),
        )

    def _time(self, change: Callable[[], None], is_shown: Callable[[View], bool]) -> float:
        began = time.perf_counter()
        change()
        for node_id, view in self._views.items():
            while not is_shown(view):
                if time.perf_counter() - began > PATIENCE_SECONDS:
                    raise ClusterFailed(f"Broker {node_id} has not shown a change in {PATIENCE_SECONDS:g} s.")
                time.sleep(_STEP_SECONDS)
        return (time.perf_counter() - began) * 1e3


def _led(view: View, topic: str) -> int:
    return sum(one.leader != NO_LEADER for one in view.topic(topic))
