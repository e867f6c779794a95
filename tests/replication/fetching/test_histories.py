"""Whatever leaders, epochs and lost answers a history has, it ends with the same bytes on all brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replication.fetching.model import Cluster

NODES = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("append later"), NODES),
        st.tuples(st.just("elect"), NODES),
        st.tuples(st.just("apply"), NODES),
        st.tuples(st.just("exchange"), NODES),
        st.tuples(st.just("exchange"), NODES),
        st.tuples(st.just("ask"), NODES),
        st.tuples(st.just("answer"), NODES),
        st.tuples(st.just("lose"), NODES),
        st.tuples(st.just("write"), NODES),
        st.tuples(st.just("delete records"), NODES),
        st.tuples(st.just("forget sessions"), NODES),
        st.tuples(st.just("wait"), NODES),
    ),
    max_size=60,
)


class History:
    """Carries out steps. A step that cannot be taken is left out."""

    def __init__(self, directory: Path, **config: str) -> None:
        self.cluster = Cluster(directory, 3, **config)
        self._values: Iterator[int] = count()
        self.cluster.lead(0)

    def take(self, step: str, number: int) -> None:
        steps: dict[str, Callable[[int], object]] = {
            "append": self._append,
            "append later": self._append_later,
            "elect": self._elect,
            "apply": self.cluster.apply,
            "exchange": self.cluster.exchange,
            "ask": self.cluster.ask,
            "answer": self.cluster.answer,
            "lose": self.cluster.lose,
            "write": self._write,
            "delete records": self._delete_records,
            "forget sessions": lambda number: self.cluster.nodes[number].forget_sessions(),
            "wait": self._wait,
        }
        steps[step](number)

    def _append(self, number: int) -> None:
        for node in self.cluster.nodes:
            if node.partition.is_leader:  # an old one does not know better
                node.append(*(b"%d" % next(self._values) for _ in range(number)))

    def _append_later(self, number: int) -> None:
        node = self.cluster.nodes[number]
        if node.partition.is_leader:
            node.append_later(b"%d" % next(self._values))

    def _elect(self, number: int) -> None:
        self.cluster.elect(number)
        self.cluster.apply(number)

    def _write(self, number: int) -> None:
        writer = self.cluster.nodes[number].writer
        if writer.submitted:
            writer.write_next()

    def _delete_records(self, number: int) -> None:
        node = self.cluster.nodes[number]
        if node.partition.is_leader:
            node.log.delete_records(node.log.high_watermark)

    def _wait(self, number: int) -> None:
        self.cluster.now += 0.1

    def end(self) -> None:
        self.cluster.elect(self.cluster.image.leader)
        self.cluster.settle()
        leader = self.cluster.nodes[self.cluster.image.leader]
        leader.append(b"last")
        self.cluster.settle()
        self.cluster.check_same()


@given(STEPS, st.sampled_from(["1048576", "310000"]))
@settings(deadline=None)
def test_any_history_ends_with_the_same_logs(steps: list[tuple[str, int]], segment_bytes: str) -> None:
    with TemporaryDirectory() as directory:
        history = History(Path(directory) / "nodes", internal_segment_bytes=segment_bytes)
        for step in steps:
            history.take(*step)
        history.end()


@pytest.mark.parametrize("segment_bytes", ["1048576", "300"])
def test_a_plain_history(tmp_path: Path, segment_bytes: str) -> None:
    history = History(tmp_path / "nodes", internal_segment_bytes=segment_bytes)
    for number in range(20):
        history.take("append", 1 + number % 3)
        history.take("exchange", number % 3)
    history.take("elect", 1)
    history.take("append", 2)
    history.end()
