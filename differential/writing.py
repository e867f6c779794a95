"""Random requests that write: Produce of all sorts, and DeleteRecords."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from differential.aiming import Aim
from differential.batches import CODECS, FLAWS, batch, damaged, times_of
from differential.deeds import deletion, production
from differential.exchange import Answers
from differential.places import Place
from differential.reading import Reading
from differential.scene import QUIET_SECONDS, Scene
from differential.steps import Step
from strandline.model import INT32_MAX
from strandline.wire.api import ApiKey

_VERSIONS: Final = (3, 4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 13)
_IDS: Final = range(7000, 7004)
_MOST_REMEMBERED: Final = 7
_POLL_MS: Final = 2000


@dataclass(slots=True)
class Idempotent:
    """What a producer knows of one partition."""

    epoch: int = 0
    next: int = 0
    sent: list[bytes] = field(default_factory=list)


class Writing:
    """Sends one such request at each call, and waits until both brokers have its effect."""

    def __init__(self, scene: Scene, aim: Aim, reading: Reading) -> None:
        self._scene, self._aim, self._dice, self._reading = scene, aim, scene.dice, reading
        self._producers: dict[tuple[int, Place], Idempotent] = {}

    def produce(self) -> None:
        """Plain batches for some partitions, mostly good ones."""
        records: dict[Place, bytes | None] = {}
        for place in self._aim.places(self._dice.choice((1, 1, 1, 2, 4))):
            good, times = self._batch()
            is_good = self._dice.random() < 0.9
            records[place] = bytes(good) if is_good else self._flawed(good, times)
            if is_good and place in self._scene.known:
                self._scene.known[place].times += times
        acks = self._dice.choice((-1, -1, -1, -1, -1, -1, 1, 1, 0)) if self._dice.random() < 0.98 else 2
        self._send(records, acks=acks)

    def produce_in_sequence(self) -> None:
        """A batch of an idempotent producer: the next one, one that was sent before, or one that does not fit."""
        producer_id, place = self._dice.choice(_IDS), self._aim.place()
        known = self._producers.setdefault((producer_id, place), Idempotent())
        draw = self._dice.random()
        if draw < 0.2 and known.sent:
            self._send({place: self._dice.choice(known.sent)})
            return
        epoch, sequence = known.epoch, known.next
        if draw < 0.28:
            sequence += self._dice.choice((-1, 1, 5, INT32_MAX - known.next - 1))
        elif draw < 0.34:
            epoch += self._dice.choice((-1, 1, 1, 1))
            sequence = 0 if self._dice.random() < 0.7 else sequence
        good, times = self._batch((producer_id, epoch), max(sequence, 0))
        answers = self._send({place: bytes(good)})
        if _accepted(answers):
            known.epoch, known.next = epoch, (sequence + len(times)) % (INT32_MAX + 1)
            known.sent = [*known.sent, bytes(good)][-_MOST_REMEMBERED:]
            self._scene.known[place].times += times

    def delete(self) -> None:
        """DeleteRecords."""
        offsets = {place: self._aim.deletion(place) for place in self._aim.places(self._dice.choice((1, 1, 3)))}
        self._scene.ask(deletion(offsets, version=self._dice.choice((0, 1, 2))))
        self._scene.rest(self._known(offsets))

    def write_to_a_reader(self) -> None:
        """A Fetch that waits at the end of a partition, and then a batch for it."""
        # The answer comes before retention rests, whose moves it tells.
        place = self._dice.choice([place for place in self._aim.live if not self._aim.known(place).is_limited])
        entry = self._reading.fetch_entry(place)
        entry.fetch_offset, entry.current_leader_epoch, entry.last_fetched_epoch = self._aim.known(place).end, -1, -1
        request = self._reading.fetch_request([(place, entry)])
        request.max_wait_ms, request.min_bytes = _POLL_MS, 1
        version = self._dice.choice((4, 11, 12, 13, 17))
        poll = Step(api=ApiKey.FETCH, version=version, message=request, places=(place,), wire="poll")
        number = self._scene.findings.begin(poll)
        self._scene.pair.send(poll)
        good, times = self._batch()
        self._send({place: bytes(good)})
        self._scene.known[place].times += times
        self._scene.receive(number, poll)

    def _batch(self, producer: tuple[int, int] = (-1, -1), sequence: int = -1) -> tuple[bytearray, list[int]]:
        dice = self._dice
        times = times_of(dice, dice.randint(1, 8))
        size = dice.choice((20, 200, 700, 2000))
        return batch(dice, times, size=size, codec=dice.choice(CODECS), producer=producer, sequence=sequence), times

    def _flawed(self, good: bytearray, times: list[int]) -> bytes | None:
        flaw = self._dice.choice(FLAWS)
        if flaw == "control":
            return bytes(batch(self._dice, times, is_control=True))
        if flaw == "future":
            return bytes(batch(self._dice, [2 * time for time in times]))
        return damaged(self._dice, good, flaw)

    def _send(self, records: dict[Place, Any], *, acks: int = -1) -> Answers:
        wire = "main" if self._dice.random() < 0.85 else f"write-{self._dice.randrange(3)}"
        step = production(records, version=self._dice.choice(_VERSIONS), acks=acks, wire=wire)
        answers = self._scene.ask(step)
        self._scene.rest(self._known(records), quiet_seconds=None if acks else QUIET_SECONDS)
        return answers

    def _known(self, places: dict[Place, Any]) -> list[Place]:
        return [place for place in places if place in self._scene.known]


def _accepted(answers: Answers) -> bool:
    message = answers.new.message
    return message is not None and message.responses[0].partition_responses[0].error_code == 0
