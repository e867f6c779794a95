"""What random requests ask for: partitions, offsets, epochs and sizes at which something may go wrong."""

from __future__ import annotations

import random

from differential.places import MISSING_TOPIC, PARTITIONS_OF_NONE, Known, Place
from differential.scene import Scene
from strandline.model import INT32_MAX, INT64_MAX

MAX_TIMESTAMP = -3
SPECIAL_TIMES = (*(-1, -2, -3, -4, -5, -6) * 3, -7)
_SIZES = (0, 1, 100, 700, 3000, 10_000, 40_000, 1 << 20, 50 << 20, INT32_MAX)
_ODD_SHARE = 0.03


class Aim:
    """Takes its chances from the dice of the run, and its targets from what is known of the partitions."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @property
    def dice(self) -> random.Random:
        return self._scene.dice

    @property
    def live(self) -> list[Place]:
        """Partitions that both brokers have in the same state."""
        return [place for place in self._scene.known if place not in self._scene.findings.left_alone]

    def known(self, place: Place) -> Known:
        return self._scene.known.get(place) or Known()

    def place(self) -> Place:
        return self.dice.choice(self.live)

    def places(self, most: int, *, may_miss: bool = True) -> list[Place]:
        """Some partitions in any order; now and then one that does not exist."""
        live = self.live
        found = self.dice.sample(live, min(self.dice.randint(1, most), len(live)))
        if may_miss and self.dice.random() < _ODD_SHARE:
            odd = (Place(MISSING_TOPIC, 0), Place(found[0].topic, PARTITIONS_OF_NONE))
            found.insert(self.dice.randrange(len(found) + 1), self.dice.choice(odd))
        return found

    def offset(self, place: Place) -> int:
        known = self.known(place)
        draw = self.dice.random()
        if draw < 0.45:
            return self.dice.choice(known.landmarks) + self.dice.choice((-2, -1, 0, 0, 0, 1, 2))
        if draw < 0.93:
            return self.dice.randint(known.start, max(known.end, known.start))
        return self.dice.choice((-1, 0, known.end + 100, -2, INT64_MAX))

    def current_epoch(self, place: Place) -> int:
        """What a client thinks that the leader epoch is."""
        known = self.known(place)
        if self.dice.random() < 0.93:
            return self.dice.choice((-1, known.epoch))
        return self.dice.choice((known.epoch - 1, known.epoch + 1, 0, known.epoch + 100))

    def epoch(self, place: Place) -> int:
        """A leader epoch to ask for."""
        known = self.known(place)
        if self.dice.random() < 0.85:
            return self.dice.randint(0, known.epoch + 1)
        return self.dice.choice((-1, -2, known.epoch, known.epoch + 50, INT32_MAX))

    def size(self) -> int:
        return self.dice.choice(_SIZES)

    def time(self, place: Place) -> int:
        """A timestamp of ListOffsets. Which record is the newest is up to a broker's clock where that stamps them."""
        if self.dice.random() < 0.55:
            special = self.dice.choice(SPECIAL_TIMES)
            return -1 if special == MAX_TIMESTAMP and self.known(place).is_stamped else special
        times = self.known(place).times or [0]
        return self.dice.choice(times) + self.dice.choice((-1000, -1, 0, 0, 1, 1000, 10_000_000))

    def deletion(self, place: Place) -> int:
        """Mostly little is deleted, so that something is left for the steps to come."""
        known = self.known(place)
        draw = self.dice.random()
        if draw < 0.55:
            return known.start + self.dice.randint(0, max((known.end - known.start) // 10, 2))
        if draw < 0.85:
            return self.dice.choice(known.landmarks) + self.dice.choice((-1, 0, 1))
        return self.dice.choice((known.start - 1, -1, -2, known.end + 1, INT64_MAX, 0))
