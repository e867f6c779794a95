"""Where two plain values differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_ABSENT: Final = "(nothing)"
_WHICH: Final = re.compile(r"\[\d+\]|(?<=^responses\.)[^.]*")
"""Places in lists, and partitions."""


class Unequal(NamedTuple):
    """One field."""

    path: str
    old: Any
    new: Any

    @property
    def field(self) -> str:
        """The path whatever partition it is of."""
        return _WHICH.sub("", self.path)

    def __str__(self) -> str:
        return f"{self.path or 'outcome'}: old {self.old}, new {self.new}"


def share_amounts(old: Any, new: Any) -> None:
    """Leave in two answers to a Fetch what both have: the batches that both have read, of partitions in both answers.

    For brokers with a cache of diskless records, which decides how many batches an answer has.
    """
    for one, other in ((old, new), (new, old)):
        for key in [key for key in one["responses"] if key not in other["responses"]]:
            del one["responses"][key]
    for key, one in old["responses"].items():
        other = new["responses"][key]
        if isinstance(one["records"], list) and isinstance(other["records"], list):
            count = min(len(one["records"]), len(other["records"]))
            one["records"], other["records"] = one["records"][:count], other["records"][:count]


def unequal(old: Any, new: Any, path: str = "") -> Iterator[Unequal]:
    """Every field that is not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from unequal(old.get(name, _ABSENT), new.get(name, _ABSENT), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            left = old[number] if number < len(old) else _ABSENT
            right = new[number] if number < len(new) else _ABSENT
            yield from unequal(left, right, f"{path}[{number}]")
    elif old != new or type(old) is not type(new):
        yield Unequal(path, old, new)
