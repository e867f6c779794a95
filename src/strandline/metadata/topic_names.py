"""Which topic names are legal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from strandline.errors import InvalidTopic

MAX_NAME_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(name: str) -> None:
    """Raise InvalidTopic with Kafka's sentence for the first rule that the name breaks."""
    if not name:
        raise InvalidTopic("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopic(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )


def collision_key(name: str) -> str:
    """Names with equal keys would give equal metric names, in which '.' becomes '_'."""
    return name.replace(".", "_")


def may_collide(name: str) -> bool:
    """False for names that have a key of their own."""
    return "." in name or "_" in name


class CollisionIndex:
    """Finds names that differ only in '.' and '_': `alike` gives those of topics that there are, `add` the new ones."""

    def __init__(self, alike: Callable[[str], Iterable[str]]) -> None:
        self._alike = alike
        self._added: dict[str, str] = {}

    def check(self, name: str) -> None:
        """Raise InvalidTopic if the name collides with another one."""
        added = self._added.get(collision_key(name))
        for other in (*self._alike(name), *(() if added is None else (added,))):
            if other != name:
                raise InvalidTopic(f"Topic '{name}' collides with existing topic: {other}")

    def add(self, name: str) -> None:
        """Add a name."""
        if may_collide(name):
            self._added[collision_key(name)] = name
