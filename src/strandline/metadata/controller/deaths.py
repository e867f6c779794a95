"""Which processes of brokers have ended, judged by the locks that their sessions held in the database.

The server of the database frees the locks of a process within milliseconds of its death. It also frees them when only
the session was lost: all at once when the server is restarted, one when a connection is reset. A free lock is therefore
no more than a reason to ask the broker itself. A process is taken for dead if its lock was free in every look, and the
looking session was the same, so that what it sees is one history of the locks,

- for CONFIRM_SECONDS, and nothing listens at the broker's address any more, or another process has taken the broker's
  name, which the first one would still hold if it had its session; or
- for SILENT_SECONDS, or a little more than half a session if that is longer, and the broker said nothing, whatever was
  tried. A session with the database is opened again in less time than that after a restart of the server, and a
  suspended process notices that it was suspended (`server.suspension`).

Any word of the broker, a heartbeat or an answer, begins this anew. A broker that lost its session and goes on is never
taken for dead, and a suspended one, which keeps its session, is left to its heartbeats. Time is time in which the
looking process itself ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from enum import Enum, auto
from typing import Final, NamedTuple
from uuid import UUID

CONFIRM_SECONDS: Final = 0.15
SILENT_SECONDS: Final = 5.0


class Sign(Enum):
    """What came of asking a broker."""

    ANSWERED = auto()
    REFUSED = auto()
    """Nothing listens at its address."""
    SILENT = auto()


class LocksSeen(NamedTuple):
    """What a look at the locks has shown of the processes that are watched."""

    view: int
    """See `Holders`."""
    alive: Set[UUID]
    """Those whose own lock is held."""
    named: Set[UUID]
    """Those whose broker's name is held, by them or by another process of that broker."""


class _Absence:
    """The looks in which a process had no lock."""

    __slots__ = ("is_refused", "is_replaced", "last", "since")

    def __init__(self, now: float) -> None:
        self.since = self.last = now
        self.is_refused = self.is_replaced = False

    def is_final(self, silent_seconds: float) -> bool:
        lasted = self.last - self.since
        return lasted >= (CONFIRM_SECONDS if self.is_refused or self.is_replaced else silent_seconds)


class Deaths:
    """The rule of the module, for the processes that are watched."""

    def __init__(self, session_seconds: float = 0.0) -> None:
        """`session_seconds`: how long a broker may send no heartbeat before it is fenced."""
        self._silent_seconds = max(SILENT_SECONDS, session_seconds / 2 + 0.5)
        self._view: int | None = None
        self._absences: dict[UUID, _Absence] = {}
        self._known: set[UUID] = set()
        """Those that had a lock of their own once. Brokers of earlier versions have none, only that of their name."""

    @property
    def dead(self) -> frozenset[UUID]:
        """The processes that have ended."""
        return frozenset(
            process for process, absence in self._absences.items() if absence.is_final(self._silent_seconds)
        )

    @property
    def suspects(self) -> list[UUID]:
        """Those that have no lock, and of which it is not known whether they live."""
        return [process for process, absence in self._absences.items() if not absence.is_final(self._silent_seconds)]

    def looked(
        self, now: float, look: LocksSeen, watched: Mapping[UUID, int], heard: Callable[[int, float], bool]
    ) -> None:
        """A look at the locks of these processes, by the ids of their brokers.

        `heard` says whether a broker was heard of since a moment.
        """
        if look.view != self._view:
            self._view = look.view
            self._absences.clear()
        self._known &= watched.keys()
        self._known |= look.alive & watched.keys()
        self._absences = {
            process: self._absence(process, now, is_replaced=process in look.named)
            for process, node_id in watched.items()
            if not self._is_alive(process, node_id, look, heard)
        }

    def _is_alive(self, process: UUID, node_id: int, look: LocksSeen, heard: Callable[[int, float], bool]) -> bool:
        if process in look.alive or (process in look.named and process not in self._known):
            return True
        absence = self._absences.get(process)
        return absence is not None and heard(node_id, absence.since)

    def _absence(self, process: UUID, now: float, *, is_replaced: bool) -> _Absence:
        absence = self._absences.get(process) or _Absence(now)
        absence.last, absence.is_replaced = now, is_replaced
        return absence

    def asked(self, process: UUID, sign: Sign) -> None:
        """A suspect was asked whether it lives."""
        absence = self._absences.get(process)
        if absence is None:
            return
        if sign is Sign.ANSWERED:
            del self._absences[process]
        else:
            absence.is_refused = sign is Sign.REFUSED

    def nothing_seen(self) -> None:
        """A look has failed: what the next one shows is not a second look."""
        self._absences.clear()
