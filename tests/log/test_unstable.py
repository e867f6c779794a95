"""Which transactions hold back the last stable offset, beside the plainest way to work it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from strandline.log.unstable import CompletedTxn, UnstableTransactions
from strandline.model import NO_OFFSET


@dataclass
class Plain:
    """Looks at everything each time."""

    open_ones: list[int] = field(default_factory=list)
    unreplicated: list[CompletedTxn] = field(default_factory=list)

    def first_unstable(self) -> int:
        return min([*self.open_ones, *(one.first_offset for one in self.unreplicated)], default=NO_OFFSET)

    def first_open_except(self, completed: CompletedTxn) -> int:
        return min((one for one in self.open_ones if one != completed.first_offset), default=NO_OFFSET)


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "end", "replicate"]), st.integers(0, 400)), max_size=300))
def test_it_agrees_with_the_plainest_way(steps: list[tuple[str, int]]) -> None:
    found, plain = UnstableTransactions(), Plain()
    for offset, (step, number) in enumerate(steps):
        if step == "begin":
            found.begin(offset, -offset)
            plain.open_ones.append(offset)
        elif step == "end" and plain.open_ones:
            ended = CompletedTxn(1, plain.open_ones[number % len(plain.open_ones)], offset, False)
            assert found.first_open_except(ended) == plain.first_open_except(ended)
            found.complete(ended)
            plain.open_ones.remove(ended.first_offset)
            plain.unreplicated.append(ended)
        elif step == "replicate":
            high_watermark = max(offset - number, 0)
            found.forget_replicated(high_watermark)
            plain.unreplicated = [one for one in plain.unreplicated if one.last_offset >= high_watermark]
        assert found.first_unstable() == plain.first_unstable()
        assert list(found.open_ones.items()) == [(first, -first) for first in plain.open_ones]


def test_those_that_were_open_in_a_snapshot_count() -> None:
    found = UnstableTransactions([(30, 3), (10, 1), (20, 2)])
    assert found.first_unstable() == 10
    assert list(found.open_ones.items()) == [(10, 1), (20, 2), (30, 3)]
    found.complete(CompletedTxn(1, 10, 40, is_aborted=True))
    assert found.first_unstable() == 10, "its marker is not replicated"
    found.forget_replicated(41)
    assert found.first_unstable() == 20


def test_what_is_gone_behind_one_that_stays_open_takes_no_memory() -> None:
    found = UnstableTransactions()
    found.begin(0, 2)
    for number in range(10_000):
        found.begin(2 * number + 1, 1)
        found.complete(CompletedTxn(1, 2 * number + 1, 2 * number + 2, is_aborted=False))
        found.forget_replicated(2 * number + 3)
    assert found.first_unstable() == 0
    assert found.kept <= 300
