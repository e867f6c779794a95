"""Asks whether a value is refused, and with which sentence."""

from __future__ import annotations

from collections.abc import Callable

from strandline.errors import InvalidConfig, InvalidRequest


def refusal_of(action: Callable[[], object]) -> str | None:
    """The sentence with which `action` was refused, or None if it was not."""
    try:
        action()
    except (InvalidConfig, InvalidRequest) as refusal:
        return str(refusal)
    return None
