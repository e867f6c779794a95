"""One run: two brokers, their topics, and random steps until it is over. What is started is stopped."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.systems import Strandline
from bench.tree import SourceTree
from tests.moments import T0

from differential.aiming import Aim
from differential.events import Events
from differential.exchange import Pair
from differential.findings import Findings
from differential.normal import Normal
from differential.reading import Reading
from differential.scene import Scene
from differential.sessions import Sessions
from differential.sides import Through, directly, new_side
from differential.staging import SETTINGS, WITHOUT_CACHE, Stage
from differential.topics import TOPICS, Topic
from differential.transactions import Transactions
from differential.writing import Writing

_CACHE: Final = Path(__file__).resolve().parent.parent / ".cache"
_HALF_A_DAY_MS: Final = 43_200_000
_MOST_DIFFERENCES: Final = 30
_PROGRESS_STEPS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for."""

    against: str | None
    """A commit; None: the working tree itself."""
    seed: int
    kinds: Sequence[str]
    directory: Path
    steps: int | None = None
    seconds: float = 0.0
    """Without a number of steps."""
    restart_every: int = 500
    """Steps between two SIGKILLs; 0: none but those of the preparation."""
    has_cache: bool = False
    """Whether brokers keep diskless records in memory: then how many batches a Fetch returns is not compared."""
    through: Through = directly
    topics: Sequence[Topic] = TOPICS
    """Those of the kinds are taken."""


def run(wanted: Wanted, say: Callable[[str], None]) -> Findings:
    """Prepare, compare, and tell what was found. Raises TreeFailed, ProcessFailed, Refused, TimeoutError."""
    working = SourceTree.working()
    tree = working if wanted.against is None else SourceTree.at(wanted.against, _CACHE)
    # No record is older than T0 by much, or younger than half a day from then: what is younger is a broker's clock.
    settings = SETTINGS if wanted.has_cache else {**SETTINGS, **WITHOUT_CACHE}
    pair = Pair(
        new_side("old", Strandline(tree, "old"), wanted.directory, settings, wanted.through),
        new_side("new", Strandline(working, "new"), wanted.directory, settings, wanted.through),
        Normal(T0 + _HALF_A_DAY_MS),
        has_cache=wanted.has_cache,
    )
    scene = Scene(pair, random.Random(wanted.seed))
    try:
        for side in pair.sides:
            side.start()
        _compare(wanted, scene, say)
    finally:
        for side in pair.sides:
            side.close()
    return scene.findings


def _compare(wanted: Wanted, scene: Scene, say: Callable[[str], None]) -> None:
    stage = Stage(scene, [topic for topic in wanted.topics if topic.kind in wanted.kinds], say)
    stage.prepare()
    aim = Aim(scene)
    reading = Reading(scene, aim)
    writing, sessions = Writing(scene, aim, reading), Sessions(scene, aim, reading)
    transactions = Transactions(scene, aim)
    events = Events(scene, stage, aim, sessions, transactions)
    moves: Sequence[tuple[int, Callable[[], None]]] = (
        (110, reading.fetch),
        (70, sessions.ask),
        (60, reading.list_offsets),
        (35, reading.epochs),
        (12, reading.producers),
        (16, writing.produce),
        (14, writing.produce_in_sequence),
        (5, writing.delete),
        (5, writing.write_to_a_reader),
        (14, transactions.move),
    )
    weights, does = [weight for weight, _ in moves], [does for _, does in moves]
    deadline, number = time.monotonic() + wanted.seconds, 0
    while number < wanted.steps if wanted.steps is not None else time.monotonic() < deadline:
        events.before(number, restart_every=wanted.restart_every)
        if not aim.live or len(scene.findings.differences) >= _MOST_DIFFERENCES:
            say("too much is different to go on")
            return
        (move,) = scene.dice.choices(does, weights)
        if events.is_settled or move != transactions.move:
            move()
        number += 1
        if number % _PROGRESS_STEPS == 0:
            seconds = time.monotonic() - deadline + wanted.seconds
            told = f"{number} moves, {scene.findings.steps} steps, {seconds:.0f} s"
            say(f"{told}: {len(scene.findings.differences)} differences")
