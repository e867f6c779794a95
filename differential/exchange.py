"""Sends one request to both brokers and compares what comes back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from differential.compare import Unequal, share_amounts, unequal
from differential.normal import Normal
from differential.sides import Closed, Side
from differential.steps import Step, structures
from strandline.wire.api import ApiKey
from strandline.wire.primitives import MalformedRequest

_LONG_WAIT_MS: Final = 700
"""From here on it counts whether a Fetch has waited: less is lost in the noise of a busy machine."""
_RETRY_SECONDS: Final = 0.02
_RETRIES: Final = 500
CACHED_KINDS: Final = frozenset({"switched", "converted", "diskless"})
"""Kinds of partitions with records that brokers keep in memory."""
_ERROR_FIELDS: Final = ("error_code", "partition_error_code")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one broker has done with a request."""

    plain: Any
    """What is compared: the answer, or in a word why there is none."""
    message: Any = None
    """None: no answer, or one that cannot be read."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Of both brokers."""

    old: Answer
    new: Answer
    differences: list[Unequal] = field(default_factory=list)


@dataclass(slots=True)
class Pair:
    """Both brokers."""

    old: Side
    new: Side
    normal: Normal
    has_cache: bool = False
    """Whether brokers keep diskless records in memory."""

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.old, self.new

    def ask(self, step: Step) -> Answers:
        """Both get it before either answer is awaited."""
        first = self._once(step)
        old, new = (self._ask_again(step, side, answer) for side, answer in zip(self.sides, first, strict=True))
        return self._compared(step, old, new)

    def send(self, step: Step) -> None:
        """Only send it: what comes back is for `receive`."""
        for side in self.sides:
            wire = side.wire(step.wire)
            wire.send(step.frame(side, wire))

    def receive(self, step: Step) -> Answers:
        """The answers to what was sent last on this connection."""
        old, new = (self._received(step, side, None) for side in self.sides)
        return self._compared(step, old, new)

    def _compared(self, step: Step, old: Answer, new: Answer) -> Answers:
        is_read = step.api is ApiKey.FETCH and old.message is not None and new.message is not None
        if self.has_cache and is_read and any(place.kind in CACHED_KINDS for place in step.places):
            share_amounts(old.plain, new.plain)
        return Answers(old, new, list(unequal(old.plain, new.plain)))

    def _once(self, step: Step) -> list[Answer]:
        begun: list[float | None] = []
        for side in self.sides:
            try:
                wire = side.wire(step.wire)
                wire.send(step.frame(side, wire))
                begun.append(time.monotonic())
            except Closed:
                side.drop(step.wire)
                begun.append(None)
        return [
            Answer("closed before the request") if at is None else self._received(step, side, at)
            for side, at in zip(self.sides, begun, strict=True)
        ]

    def _ask_again(self, step: Step, side: Side, answer: Answer) -> Answer:
        """Ask one broker until what the request waits for is over."""
        for _ in range(_RETRIES):
            if answer.message is None or not step.retried.intersection(codes_of(answer.message)):
                break
            time.sleep(_RETRY_SECONDS)
            wire = side.wire(step.wire)
            wire.send(step.frame(side, wire))
            answer = self._received(step, side, time.monotonic())
        return answer

    def _received(self, step: Step, side: Side, begun: float | None) -> Answer:
        if not step.is_answered:
            return Answer("not awaited")
        wire = side.wire(step.wire)
        try:
            frame = wire.receive()
        except Closed:
            side.drop(step.wire)
            return Answer("closed")
        except TimeoutError:
            side.drop(step.wire)
            return Answer("no answer")
        took_ms = 0.0 if begun is None else (time.monotonic() - begun) * 1000
        try:
            plain, message = self.normal.answer(side, step.api, step.version, frame)
        except MalformedRequest as error:
            return Answer(f"cannot be read: {error}; {frame.hex()}")
        if plain["correlation_id"] == wire.last_id:
            plain["correlation_id"] = "that of the request"  # retries of one broker make the numbers differ
        if step.api is ApiKey.FETCH and begun is not None and step.message.max_wait_ms >= _LONG_WAIT_MS:
            plain["waited"] = took_ms >= step.message.max_wait_ms
        if step.session is not None and message.session_id:
            side.sessions[step.session.number] = message.session_id
        return Answer(plain, message)


def codes_of(message: Any) -> set[int]:
    """Every error in an answer, wherever its API puts it."""
    found = (getattr(one, name, 0) for one in structures(message) for name in _ERROR_FIELDS)
    return {code for code in found if code}
