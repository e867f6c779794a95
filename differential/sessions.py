"""Fetch sessions: opened, asked for what is new, changed, closed, and asked for in wrong epochs."""

from __future__ import annotations

from typing import Final

from differential.aiming import Aim
from differential.compare import Unequal
from differential.places import Place
from differential.reading import Reading
from differential.scene import QUIET_SECONDS, Scene
from differential.steps import Session, Step
from strandline.wire.api import ApiKey
from strandline.wire.messages.fetch import FetchRequest, ForgottenTopic

_VERSIONS: Final = (7, 11, 12, 13, 16, 18)
_MOST_SESSIONS: Final = 4
_MOST_PLACES: Final = 8


class Sessions:
    """The sessions that both brokers have."""

    def __init__(self, scene: Scene, aim: Aim, reading: Reading) -> None:
        self._scene, self._aim, self._dice, self._reading = scene, aim, scene.dice, reading
        self._open: list[Session] = []
        self._number = 0

    def forget_all(self) -> None:
        """The brokers have, too."""
        self._open.clear()

    def ask(self) -> None:
        """One request of one of the sessions."""
        draw = self._dice.random()
        if not self._open or (len(self._open) < _MOST_SESSIONS and draw < 0.2):
            self._begin()
        elif draw < 0.26:
            self._end(self._dice.choice(self._open))
        elif draw < 0.3:
            self._misuse(self._dice.choice(self._open))
        else:
            self._go_on(self._dice.choice(self._open))

    def _begin(self) -> None:
        self._number += 1
        session = Session(number=self._number, version=self._dice.choice(_VERSIONS))
        for place in self._aim.places(_MOST_PLACES):
            session.entries[place] = self._reading.fetch_entry(place)
        self._open.append(session)
        self._ask(session, self._request(session, [*session.entries], epoch=0))

    def _go_on(self, session: Session) -> None:
        """With some partitions changed or added, and some forgotten."""
        dice = self._dice
        known = [place for place in session.entries if place not in self._scene.findings.left_alone]
        named = dice.sample(known, dice.randint(0, len(known)))
        if dice.random() < 0.3:
            named += [place for place in self._aim.places(2) if place not in named]
        for place in named:
            session.entries[place] = self._reading.fetch_entry(place)
        unnamed = [place for place in session.entries if place not in named]
        forgotten = dice.sample(unnamed, 1) if unnamed and dice.random() < 0.2 else []
        forgotten += [place for place in unnamed if place in self._scene.findings.left_alone]
        request = self._request(session, named, epoch=session.epoch)
        for place in dict.fromkeys(forgotten):
            del session.entries[place]
            request.forgotten_topics_data.append(ForgottenTopic(topic=place.topic, partitions=[place.partition]))
        self._ask(session, request)

    def _end(self, session: Session) -> None:
        """The client closes it, perhaps with a last full request."""
        self._open.remove(session)
        named = [*session.entries] if self._dice.random() < 0.5 else []
        self._ask(session, self._request(session, named, epoch=-1))

    def _misuse(self, session: Session) -> None:
        """An epoch that is not the next one, or one of a session that the brokers do not have."""
        if self._dice.random() < 0.5:
            epoch = session.epoch + self._dice.choice((-1, 1, 5))
            self._ask(session, self._request(session, [], epoch=epoch), counts=False)
        else:
            gone = Session(number=0, version=session.version)
            self._ask(gone, self._request(gone, [self._aim.place()], epoch=3), counts=False)

    def _request(self, session: Session, places: list[Place], *, epoch: int) -> FetchRequest:
        entries = [(place, session.entries.get(place) or self._reading.fetch_entry(place)) for place in places]
        request = self._reading.fetch_request(entries)
        request.session_epoch = epoch
        return request

    def _ask(self, session: Session, request: FetchRequest, *, counts: bool = True) -> None:
        places = tuple(session.entries)
        step = Step(
            api=ApiKey.FETCH, version=session.version, message=request, places=places, wire="session", session=session
        )
        number, answers = self._scene.ask_once(step)
        error = 0 if answers.new.message is None else answers.new.message.error_code
        if counts and not error:
            session.epoch = 1 if request.session_epoch == 0 else session.epoch + 1
        if answers.differences:
            self._look_again(number, step, session, answers.differences)
        elif (error or answers.new.message is None) and session in self._open:
            self._open.remove(session)

    def _look_again(self, number: int, step: Step, session: Session, differences: list[Unequal]) -> None:
        """Whether a new session over the same partitions differs, too, once both brokers rest."""
        if session in self._open:
            self._open.remove(session)
        known = [place for place in session.entries if place in self._scene.known]
        self._scene.rest(known, quiet_seconds=QUIET_SECONDS)
        self._number += 1
        again = Session(number=self._number, version=session.version, entries=dict(session.entries))
        request = self._request(again, [*again.entries], epoch=0)
        for name in ("replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level"):
            setattr(request, name, getattr(step.message, name))
        opening = Step(
            api=ApiKey.FETCH, version=again.version, message=request, places=step.places, wire="session", session=again
        )
        _, answers = self._scene.ask_once(opening)
        if answers.differences:
            self._scene.differ(number, str(opening), step.places, answers.differences)
        else:
            self._scene.findings.pass_by(number, step, differences)
