"""Random moves of transactional producers, those of the preparation included."""

from __future__ import annotations

from typing import Final

from differential.aiming import Aim
from differential.batches import batch, times_of
from differential.deeds import end, producer_error, producer_of, production, wait_for_markers, write_in_transaction
from differential.places import Place
from differential.scene import Scene
from differential.transacting import Transactional

_NAMES: Final = ("wide-old", "wide-new")
_MOST_PLACES: Final = 3


class Transactions:
    """One move of one producer at each call."""

    def __init__(self, scene: Scene, aim: Aim) -> None:
        self._scene, self._aim, self._dice = scene, aim, scene.dice

    def move(self) -> None:
        for name in _NAMES:
            producer_of(self._scene, name, is_new=name.endswith("new"))
        producer = self._scene.producers[self._dice.choice(sorted(self._scene.producers))]
        draw = self._dice.random()
        if not producer.is_open:
            self._begin(producer)
        elif draw < 0.35:
            end(self._scene, producer, commit=self._dice.random() < 0.6)
        elif draw < 0.4:
            self._begin_anew(producer)
        elif draw < 0.5:
            self._break_rules(producer)
        else:
            self._write(producer)

    def end_all(self) -> None:
        """Nothing stays open."""
        for producer in self._scene.producers.values():
            if producer.is_open:
                end(self._scene, producer, commit=True)

    def _begin(self, producer: Transactional) -> None:
        places = self._aim.places(_MOST_PLACES, may_miss=False)
        if not producer.is_new:
            producer.added.update(places)
            self._scene.ask(producer.add(places))
        for place in places:
            self._write_to(producer, place)

    def _write(self, producer: Transactional) -> None:
        alive = {*self._aim.live}
        places = sorted((producer.added | producer.written) & alive)
        if places:
            self._write_to(producer, self._dice.choice(places))
        else:
            end(self._scene, producer, commit=False)

    def _write_to(self, producer: Transactional, place: Place) -> None:
        write_in_transaction(self._scene, producer, place)
        self._scene.rest([place])

    def _begin_anew(self, producer: Transactional) -> None:
        """InitProducerId, which aborts what is open."""
        places = sorted(producer.written)
        answers = self._scene.ask(producer.init())
        wait_for_markers(self._scene, producer)
        producer.initialised(answers.new.message)
        self._scene.rest([place for place in places if place in self._scene.known])

    def _break_rules(self, producer: Transactional) -> None:
        """A partition that was not added, an epoch that is not the producer's, a batch outside of the transaction."""
        place, dice = self._aim.place(), self._dice
        match dice.randrange(4):
            case 0:
                self._scene.ask(producer.end(commit=True, epoch=producer.epoch + dice.choice((-1, 1))))
                return
            case 1:
                self._scene.ask(producer.add([place], epoch=producer.epoch + dice.choice((-1, 1))))
                return
            case kind:
                epoch = producer.epoch if kind == 2 else producer.epoch + dice.choice((-1, 1))
        times = times_of(dice, 2)
        data = batch(
            dice,
            times,
            producer=(producer.producer_id, max(epoch, 0)),
            sequence=producer.sequences.get(place, 0) + dice.choice((0, 0, 3)),
            is_transactional=dice.random() < 0.8,
        )
        step = production(
            {place: bytes(data)},
            version=dice.choice(producer.produce_versions),
            transactional_id=dice.choice((producer.transactional_id, producer.transactional_id, None, "other")),
        )
        if producer_error(self._scene.ask(step)) == 0:
            producer.sequences.pop(place, None)
            producer.written.add(place)
        self._scene.rest([place])
