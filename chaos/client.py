"""`python -m chaos.client`: one client of a run, in a process of its own that can be killed.

It is told what to do in its argument, writes events and steps to standard output, and ends when standard input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from chaos.copiers import copy
from chaos.full_read import read_everything
from chaos.groups import consume_as_member
from chaos.history import Promise, Trouble
from chaos.readers import observe, read_committed
from chaos.recorder import Recorder
from chaos.sharing import share
from chaos.stage import Stage
from chaos.values import CLASSIC_GROUP, CONSUMER_GROUP
from chaos.writers import append, write_transactions

Work = Callable[[Stage, str], None]
WORK: Mapping[str, Work] = {
    "txn": write_transactions,
    "idempotent": partial(append, promise=Promise.IDEMPOTENT),
    "plain": partial(append, promise=Promise.PLAIN),
    "reader": read_committed,
    "copy": copy,
    "observer": observe,
    "classic-member": partial(consume_as_member, group=CLASSIC_GROUP),
    "consumer-member": partial(consume_as_member, group=CONSUMER_GROUP),
    "share-member": share,
    "end": read_everything,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a client process is told."""

    work: str
    name: str
    bootstrap: str
    tiers: Sequence[str]
    seed: int
    started: float
    """When the run began, on the clock that all processes of a machine share."""
    generation: int

    def to_argument(self) -> str:
        return json.dumps(asdict(self))


def step_line(name: str, within: float) -> str:
    """How a step is announced: as a line that is no event."""
    return f"step {within} {name}"


def step_of(line: str) -> tuple[str, float] | None:
    """Name and time of a step; None if the line is something else."""
    if not line.startswith("step "):
        return None
    _, within, name = line.split(" ", 2)
    return name, float(within)


def perform(argument: str, work: Mapping[str, Work]) -> None:
    """Do what the argument says. An exception that is not expected spoils the run: it is written down."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which sees to its clients
    output = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")  # lines are out before anything else is done
    os.dup2(2, 1)  # what libraries print is no event
    task = Task(**json.loads(argument))
    stage = Stage(
        task.bootstrap,
        task.tiers,
        task.seed,
        Recorder(output),
        started=task.started,
        generation=task.generation,
        on_step=lambda name, within: print(step_line(name, within), file=output),
    )
    threading.Thread(target=_await_end, args=[stage.stop], daemon=True).start()
    try:
        work[task.work](stage, task.name)
    except Exception:  # noqa: BLE001  whatever it is, the judge gets to know
        stage.recorder.write(Trouble(at=stage.now, what=f"{task.name} failed", text=traceback.format_exc()))


def _await_end(stop: threading.Event) -> None:
    os.read(0, 1)
    stop.set()


if __name__ == "__main__":
    perform(sys.argv[1], WORK)
