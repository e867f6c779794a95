"""One figure: its name, its unit, which way is better, and the target it is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Against(Enum):
    """What a target is compared with."""

    KAFKA = "Kafka"
    NOTHING = "absolute"
    ANOTHER = "another figure of ours"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on Strandline's median, as a multiple of Kafka's or of another figure, or in the unit of the figure."""

    bound: float
    against: Against = Against.KAFKA
    other: str = ""
    """The name of the other figure."""
    words: str = ""
    """What the other figure is, for the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table."""

    name: str
    title: str
    unit: str
    more_is_better: bool = True
    target: Target | None = None
    section: str = ""
