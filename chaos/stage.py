"""What every client of a run is given, and how it is run."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException

from chaos.history import Ended, Recorder, Trouble
from chaos.values import Place, list_topic

PARTITIONS = 3
CALL_SECONDS = 15.0
"""How long a client waits for one call before it asks again or gives up."""
GRACE_SECONDS = 10.0
"""How much longer than its timeout a call may take before nobody waits for it any more."""
TRANSACTION_SECONDS = 20.0
"""After this time the coordinator aborts a transaction that nobody ends."""


@dataclass(slots=True)
class Stage:
    """The cluster's address, the dice, the history, and the end of the run."""

    bootstrap: str
    tiers: Sequence[str]
    seed: int
    recorder: Recorder
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return round(time.monotonic() - self.started, 3)

    @property
    def places(self) -> list[Place]:
        """The partitions that values are appended to."""
        return [(list_topic(tier), partition) for tier in self.tiers for partition in range(PARTITIONS)]

    def dice(self, name: str) -> random.Random:
        """Chance of one client: its decisions depend on the seed and its name, not on the other clients."""
        return random.Random(f"{self.seed} {name}")

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
                after=self.recorder.last_fault,
            )
        )

    def start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Run the client in a thread. An exception that it does not expect spoils the run: it is written down."""

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


def returning(name: str, call: Callable[[], object], *, within: float = CALL_SECONDS + GRACE_SECONDS) -> None:
    """Make a call that may never return, whatever its timeout says; then the client that made it has to be replaced.

    librdkafka's issues 5456 and 5511: a producer waits forever if the coordinator of a group is not in the metadata
    for a moment. Raises KafkaException: a fatal one if the call has not returned in time, else what the call raises.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as exception:  # noqa: BLE001  the caller gets it
            raised.append(exception)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(within)
    if thread.is_alive():
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{name} does not return", True))
    if raised:
        raise raised[0]
