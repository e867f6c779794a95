"""Asking for the sentence of a refusal, where taking the value would be as good."""

from __future__ import annotations

from collections.abc import Callable

from strandline.errors import InvalidConfig, InvalidRequest


def refusal_of(action: Callable[[], object]) -> str | None:
    """What `action` was refused with, or None if it was not."""
    try:
        action()
    except (InvalidConfig, InvalidRequest) as refusal:
        return str(refusal)
    return None
