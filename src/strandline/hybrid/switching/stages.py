"""How far the switch of one partition is, on the broker that has its log: stages, what belongs to each, legal moves.

What `diskless.migration.state` says of topics is something else: see `states`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.prefix_here import PrefixHere

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager.prefix import PrefixStatus


class Stage(enum.Enum):
    """Where a partition stands between classic and diskless."""

    UNKNOWN = enum.auto()
    """The control plane was not asked for the boundary in this leader epoch. Nothing is served."""
    CLASSIC = enum.auto()
    """There is no boundary, and the switch has not begun: the partition is served as a classic one."""
    WAITING = enum.auto()
    """As CLASSIC: other topics come first."""
    DRAINING = enum.auto()
    """As CLASSIC: transactions are open, and have to end first."""
    SEALED = enum.auto()
    """The log takes no records. Its boundary is being set; it is there already if an answer was lost."""
    STEPPED_BACK = enum.auto()
    """As CLASSIC: its boundary could not be set, and is tried again."""
    BOUNDARY_KNOWN = enum.auto()
    """There is a boundary, and nothing is served until the object store is open."""
    SWITCHED = enum.auto()
    """Both parts are served as one log."""
    RELEASED = enum.auto()
    """The topic is not to be diskless any more: the partition is an ordinary one."""


PENDING: Final = frozenset({Stage.CLASSIC, Stage.WAITING, Stage.DRAINING, Stage.SEALED, Stage.STEPPED_BACK})
"""Without a boundary, and to be switched."""

# What the metadata and the control plane say counts at every stage: another leader epoch, the end of the setting, and
# a boundary that is there. What a crash has interrupted begins again from UNKNOWN.
_ALWAYS: Final = frozenset({Stage.UNKNOWN, Stage.RELEASED})
_WHILE_PENDING: Final = PENDING | _ALWAYS | {Stage.BOUNDARY_KNOWN}

MOVES: Final[Mapping[Stage, frozenset[Stage]]] = {
    Stage.UNKNOWN: _ALWAYS | {Stage.CLASSIC, Stage.BOUNDARY_KNOWN},
    Stage.CLASSIC: _WHILE_PENDING,
    Stage.WAITING: _WHILE_PENDING,
    Stage.DRAINING: _WHILE_PENDING,
    # What is sealed does not wait and does not drain: it is sealed again, or takes records again first.
    Stage.SEALED: _WHILE_PENDING - {Stage.WAITING, Stage.DRAINING},
    Stage.STEPPED_BACK: _WHILE_PENDING,
    # Back to CLASSIC if the boundary is of no use, and was taken back.
    Stage.BOUNDARY_KNOWN: _ALWAYS | {Stage.BOUNDARY_KNOWN, Stage.SWITCHED, Stage.CLASSIC},
    # Back to UNKNOWN only if the control plane has lost the boundary.
    Stage.SWITCHED: _ALWAYS | {Stage.SWITCHED},
    Stage.RELEASED: frozenset(),
}
"""To which stages a partition may go from each. One that is its own next stage may be entered again."""


@dataclass(frozen=True, slots=True)
class PlainStage:
    """A stage of which nothing else is to be known."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class WhileUnknown:
    """See `Stage.UNKNOWN`."""

    stage: ClassVar = Stage.UNKNOWN
    sealed_at: float | None = None
    """When writers were shut out, if that was for the switch, by the monotonic clock."""


@dataclass(frozen=True, slots=True)
class WhileDraining:
    """See `Stage.DRAINING`."""

    stage: ClassVar = Stage.DRAINING
    held_by: frozenset[int] = frozenset()
    """Producers whose open transactions have made the switch step back."""


@dataclass(frozen=True, slots=True)
class WhileSealed:
    """See `Stage.SEALED`."""

    stage: ClassVar = Stage.SEALED
    sealed_at: float
    """When the first seal was set that has not been taken off since, by the monotonic clock."""


@dataclass(frozen=True, slots=True)
class WithBoundary:
    """See `Stage.BOUNDARY_KNOWN`."""

    stage: ClassVar = Stage.BOUNDARY_KNOWN
    sealed_at: float | None
    """As in `WhileUnknown`."""


class SwitchedParts(NamedTuple):
    """Both parts of a partition that has its boundary, and what serves them as one log."""

    prefix: PrefixHere
    newest: DisklessPart
    served: ServedPartition


@dataclass(frozen=True, slots=True)
class WhileSwitched:
    """See `Stage.SWITCHED`."""

    stage: ClassVar = Stage.SWITCHED
    parts: SwitchedParts
    is_copying: bool
    """Whether the prefix is not in remote storage yet."""
    prefix: PrefixStatus | None = None
    """How much of the prefix is in remote storage; None if that was not looked at yet, or nothing is copied."""


StageData: TypeAlias = PlainStage | WhileUnknown | WhileDraining | WhileSealed | WithBoundary | WhileSwitched
