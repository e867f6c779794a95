"""What happens to both brokers between steps: SIGKILL, conversions, switches."""

from __future__ import annotations

from differential.aiming import Aim
from differential.deeds import convert, switch
from differential.places import Place
from differential.scene import Scene
from differential.sessions import Sessions
from differential.staging import Stage
from differential.topics import Topic
from differential.transactions import Transactions

_CONVERT_EVERY = 160
_SWITCH_AT = 200
_LATER = "switched-later"
_WITHOUT_DISKLESS = {"diskless.storage.system.enable": "false"}
"""Nobody can ask for boundaries: whatever was switched is not settled."""


class Events:
    """Decided by the number of the step alone, so that a seed repeats them."""

    def __init__(self, scene: Scene, stage: Stage, aim: Aim, sessions: Sessions, transactions: Transactions) -> None:
        self._scene, self._stage, self._aim = scene, stage, aim
        self._sessions, self._transactions = sessions, transactions
        self._switched = False
        self._turns = 0
        self.is_settled = True
        """Otherwise diskless logs are out of reach, and transactions would have no end."""

    def before(self, number: int, *, restart_every: int) -> None:
        """What is due before this step; 0 is the first one."""
        if restart_every:
            self._restart(number % restart_every, restart_every)
        if not self.is_settled:
            return
        if number % _CONVERT_EVERY == _CONVERT_EVERY - 1:
            self._convert()
        if number >= _SWITCH_AT and not self._switched:
            self._switched = True
            self._switch()

    def _restart(self, number: int, restart_every: int) -> None:
        """Once in each turn, and twice more around a tenth of it in which nothing is known of diskless logs."""
        is_settled = not restart_every * 7 // 10 <= number < restart_every * 8 // 10
        if not any(topic.kind == "switched" for topic in self._stage.topics):
            is_settled = True
        if is_settled is not self.is_settled:
            if not is_settled:
                self._transactions.end_all()
            self.is_settled = is_settled
            self._stage.restart(overrides={} if is_settled else _WITHOUT_DISKLESS)
            self._sessions.forget_all()
        elif number == 0 and self._turns:
            self._stage.restart()
            self._sessions.forget_all()
        self._turns += number == 0

    def _convert(self) -> None:
        topics = [topic for topic in self._stage.topics if topic.kind == "converted" and self._is_sound(topic)]
        if topics:
            convert(self._scene, self._scene.dice.choice(topics).places)

    def _switch(self) -> None:
        """A topic that others read and write becomes diskless. Transactions would keep it waiting."""
        for topic in self._stage.topics:
            if topic.name == _LATER and self._is_sound(topic):
                self._transactions.end_all()
                switch("")(self._scene, topic.places)

    def _is_sound(self, topic: Topic) -> bool:
        left_alone: set[Place] = self._scene.findings.left_alone
        return not left_alone.intersection(topic.places)
