"""Outcomes of a suite, and the list of tests that must pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

HERE = Path(__file__).parent
_SHOWN = 40


class Outcome(Enum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    MISSING = "missing"  # expected to pass, but it was not even run


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run of one suite says about us. `suite` is the name of its list: two kinds of topics are two lists."""

    suite: str
    outcomes: Mapping[str, Outcome]
    allowed: frozenset[str]

    @property
    def regressions(self) -> list[str]:
        """Tests that were expected to pass and did not."""
        return sorted(name for name in self.allowed if self._outcome(name) is not Outcome.PASSED)

    @property
    def newly_passing(self) -> list[str]:
        """Tests that passed and are not in the list yet."""
        return sorted(name for name, outcome in self.outcomes.items() if self._is_new(name, outcome))

    @property
    def known_failures(self) -> list[str]:
        """Tests that fail and are not expected to pass; docs/interop.md has the reasons."""
        failed = (name for name, outcome in self.outcomes.items() if outcome is Outcome.FAILED)
        return sorted(name for name in failed if name not in self.allowed)

    def _outcome(self, name: str) -> Outcome:
        return self.outcomes.get(name, Outcome.MISSING)

    def _is_new(self, name: str, outcome: Outcome) -> bool:
        return outcome is Outcome.PASSED and name not in self.allowed

    def lines(self) -> Iterable[str]:
        """The report for a person."""
        counts = {one: sum(outcome is one for outcome in self.outcomes.values()) for one in Outcome}
        yield f"{self.suite}: " + ", ".join(f"{count} {one.value}" for one, count in counts.items() if count)
        for title, names in (
            ("expected to pass, but did not", self.regressions),
            ("passed, and may be added to the list with --update", self.newly_passing),
            ("fails, as docs/interop.md explains", self.known_failures),
        ):
            if names:
                yield f"  {title}:"
                yield from (f"    {name} ({self._outcome(name).value})" for name in names[:_SHOWN])
                if len(names) > _SHOWN:
                    yield f"    ... and {len(names) - _SHOWN} more"


def allow_file(suite: str) -> Path:
    return HERE / f"{suite}.allow"


def read_allowed(suite: str) -> frozenset[str]:
    """The tests that must pass. Lines that begin with # are comments."""
    path = allow_file(suite)
    lines = path.read_text().splitlines() if path.exists() else []
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def add_allowed(report: Report) -> None:
    """Add what newly passes. Nothing is ever taken away here: a person does that, with a reason."""
    names = sorted(read_allowed(report.suite) | set(report.newly_passing))
    header = f"# Tests of {report.suite} that pass against Strandline. This list only grows.\n"
    allow_file(report.suite).write_text(header + "".join(f"{name}\n" for name in names))
