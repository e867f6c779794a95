"""Producer sequence numbers: 31-bit counters that wrap from the largest number to zero."""

from __future__ import annotations

from strandline.model import INT32_MAX


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` records after `sequence`."""
    if sequence > INT32_MAX - increment:
        return increment - (INT32_MAX - sequence) - 1
    return sequence + increment


def decrement_sequence(sequence: int, decrement: int) -> int:
    """The sequence number `decrement` records before `sequence`."""
    if sequence < decrement:
        return INT32_MAX - (decrement - sequence) + 1
    return sequence - decrement
