"""What every client of a run is given, and how it is run."""

from __future__ import annotations

import itertools
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from chaos.history import Ended, Trouble
from chaos.recorder import Recorder
from chaos.values import Place, copy_topic, list_topic

PARTITIONS = 3
CALL_SECONDS = 15.0
"""How long a client waits for one call before it asks again or gives up."""
GRACE_SECONDS = 10.0
"""How much longer than its timeout a call may take before its client is killed."""
TRANSACTION_SECONDS = 20.0
"""After this time the coordinator aborts a transaction that nobody ends."""
_VALUES_OF_A_PROCESS = 1_000_000_000


def _nobody_listens(name: str, within: float) -> None:
    """For a stage that nobody attends to."""


@dataclass(slots=True)
class Stage:
    """The cluster's address, the dice, the history, and the end of the run."""

    bootstrap: str
    tiers: Sequence[str]
    seed: int
    recorder: Recorder
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = field(default_factory=time.monotonic)
    generation: int = 0
    """How many processes of the client there were before this one."""
    on_step: Callable[[str, float], None] = _nobody_listens
    doing: str = "start"
    """The call that is being made, for those who want to know where a client ended."""

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return round(time.monotonic() - self.started, 3)

    @property
    def places(self) -> list[Place]:
        """The partitions that values are appended to."""
        return [(list_topic(tier), partition) for tier in self.tiers for partition in range(PARTITIONS)]

    @property
    def all_places(self) -> list[Place]:
        """Every partition: lists and copies."""
        topics = [name(tier) for tier in self.tiers for name in (list_topic, copy_topic)]
        return [(topic, number) for topic in topics for number in range(PARTITIONS)]

    def dice(self, name: str) -> random.Random:
        """Chance of one client: its decisions depend on the seed and its name, not on the other clients."""
        return random.Random(f"{self.seed} {name}" + (f" {self.generation}" if self.generation else ""))

    def numbers(self) -> Iterator[int]:
        """For what a client numbers: those of the process that takes over come after those of the one before."""
        return itertools.count(self.generation * _VALUES_OF_A_PROCESS + 1)

    def step(self, name: str, within: float = CALL_SECONDS + GRACE_SECONDS) -> None:
        """Announce a call, or some that belong together, that may never return, whatever their timeouts say.

        Unless another step follows in time, the process of the client is killed, and another takes over. librdkafka's
        issues 5456 and 5511: a producer waits forever if the coordinator of a group is not in the metadata for a
        moment. Its consumer may wait forever in close, too, and then has stopped every thread of its process.
        """
        self.doing = name
        self.on_step(name, within)

    def client_ended(self, writer: str, operation: str, error: KafkaError) -> None:
        """Write down that a client has to be replaced."""
        self.recorder.write(
            Ended(
                at=self.now,
                writer=writer,
                operation=operation,
                error=error.name(),
                text=error.str(),
                is_fatal=error.fatal(),
            )
        )

    def start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Do it in a thread. An exception that it does not expect spoils the run: it is written down."""

        def run() -> None:
            try:
                work()
            except Exception:  # noqa: BLE001  whatever it is, the judge gets to know
                self.recorder.write(Trouble(at=self.now, what=f"{name} failed", text=traceback.format_exc()))

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread


def error_of(exception: BaseException) -> KafkaError:
    """The error of librdkafka in an exception of its binding."""
    error = exception.args[0]
    if not isinstance(error, KafkaError):
        raise exception
    return error
