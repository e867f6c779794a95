"""Both brokers, the dice, and all that a run knows while it goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from differential.administering import leader_epochs
from differential.compare import Unequal
from differential.exchange import Answers, Pair
from differential.findings import Findings
from differential.places import Known, Place
from differential.settling import StatesDiffer, settle
from differential.steps import Step
from differential.transacting import Transactional

_REPEATS: Final = 4
_PAUSE_SECONDS: Final = 0.4
QUIET_SECONDS: Final = 0.35
"""So long nothing has to happen behind a request. Copies and retention look for work each 100 ms."""


@dataclass(slots=True)
class Scene:
    """What deeds and steps work with."""

    pair: Pair
    dice: random.Random
    findings: Findings = field(default_factory=Findings)
    known: dict[Place, Known] = field(default_factory=dict)
    quiet: set[Place] = field(default_factory=set)
    """Partitions that change by requests alone."""
    producers: dict[str, Transactional] = field(default_factory=dict)

    def ask(self, step: Step) -> Answers:
        """One step, compared. What differs is written down, once it is known to stay."""
        number, answers = self.ask_once(step)
        if answers.differences:
            self._judge(number, step, answers)
        return answers

    def ask_once(self, step: Step) -> tuple[int, Answers]:
        """One step, whose differences the caller judges."""
        number = self.findings.begin(step)
        answers = self.pair.ask(step)
        self.findings.count(step, answers)
        return number, answers

    def receive(self, number: int, step: Step) -> Answers:
        """The end of a step that was only sent."""
        answers = self.pair.receive(step)
        self.findings.count(step, answers)
        if answers.differences:
            self.differ(number, str(step), step.places, answers.differences)
        return answers

    def _judge(self, number: int, step: Step, answers: Answers) -> None:
        if not step.is_read:
            self.differ(number, str(step), step.places, answers.differences)
            self.findings.left_alone.update(step.changes)
            return
        again = answers
        for _ in range(_REPEATS):
            self.rest([place for place in step.places if place in self.known], quiet_seconds=QUIET_SECONDS)
            again = self.pair.ask(step)
            if not again.differences:
                self.findings.pass_by(number, step, answers.differences)
                return
            time.sleep(_PAUSE_SECONDS)
        self.differ(number, str(step), step.places, again.differences)

    def differ(self, number: int, what: str, places: Sequence[Place], fields: Sequence[Unequal]) -> None:
        self.findings.add(number, what, places, fields)

    def rest(self, places: Sequence[Place], *, quiet_seconds: float | None = None) -> None:
        """Wait until both brokers have these partitions in the same state, and learn it.

        Partitions of which they never do are left alone from then on.
        """
        watched = [place for place in dict.fromkeys(places) if place not in self.findings.left_alone]
        if not watched:
            return
        if quiet_seconds is None:
            quiet_seconds = 0.0 if self.quiet.issuperset(watched) else QUIET_SECONDS
        try:
            state = settle(self.pair, watched, quiet_seconds=quiet_seconds)
        except StatesDiffer as problem:
            for place, old in problem.old.items():
                fields = [Unequal("state", str(old), str(problem.new.get(place)))]
                self.differ(self.findings.steps + 1, f"STATE of {place}", [place], fields)
            self.findings.left_alone.update(problem.old)
            self.rest([place for place in watched if place not in problem.old], quiet_seconds=quiet_seconds)
            return
        for place, ends in state.items():
            self.known[place].learn(ends)

    def learn_epochs(self) -> None:
        """The leader epochs, which have to be the same on both sides."""
        for topic in {place.topic for place in self.known}:
            found = []
            for side in self.pair.sides:
                with side.client() as client:
                    found.append(leader_epochs(client, topic))
            old, new = found
            for partition, epoch in new.items():
                place = Place(topic, partition)
                if old.get(partition) != epoch:
                    fields = [Unequal("leader epoch", old.get(partition), epoch)]
                    self.differ(self.findings.steps + 1, f"EPOCH of {place}", [place], fields)
                self.known[place].epoch = epoch

    def both(self, places: Sequence[Place], what: str) -> None:
        """Remember what is done to both brokers apart from requests that are compared."""
        self.findings.note(places, what)
