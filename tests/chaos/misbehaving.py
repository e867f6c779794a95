"""Clients that do not behave, as processes of their own: `python -m tests.chaos.misbehaving`."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from chaos.client import perform
from chaos.history import Append, Attempt, Begun, Outcome, Promise
from chaos.stage import Stage


def stand_still_with_the_lock(stage: Stage, name: str) -> None:
    """The first process waits in C for ever, and no other thread of it can do anything; the second one is well."""
    _write(stage, name, lambda: ctypes.PyDLL(None).pause())


def be_suspended(stage: Stage, name: str) -> None:
    """The first process is suspended from outside; the second one is well."""
    _write(stage, name, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def _write(stage: Stage, name: str, hang: Callable[[], object]) -> None:
    value = Append(topic="list-classic", partition=0, value=f"{name}/{next(stage.numbers())}")
    promise = Promise.TRANSACTIONAL
    stage.recorder.write(Begun(at=stage.now, client=name, writer=name, promise=promise, appends=[value]))
    if stage.generation == 0:
        stage.step("commit_transaction", within=0.0)
        hang()
    stage.recorder.write(
        Attempt(at=stage.now, writer=name, promise=promise, outcome=Outcome.COMMITTED, appends=[value])
    )
    stage.step("wait")
    stage.stop.wait()


def raise_an_error(stage: Stage, name: str) -> NoReturn:
    raise LookupError("nothing is here")


def crash(stage: Stage, name: str) -> None:
    stage.step("produce")
    os.abort()


def hang_always(stage: Stage, name: str) -> None:
    stage.step("consume", within=0.0)
    signal.pause()


if __name__ == "__main__":
    perform(
        sys.argv[1],
        {work.__name__: work for work in (stand_still_with_the_lock, be_suspended, raise_an_error, crash, hang_always)},
    )
