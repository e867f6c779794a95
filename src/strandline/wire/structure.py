"""The base of all generated message classes.

Dataclasses would generate `__eq__` and `__repr__` for each class when it is imported: for the 150 classes that a broker
uses, that is a noticeable part of its start.
"""

from __future__ import annotations


class Structure:
    """A struct of Kafka's protocol: equal to another of its class with equal fields, and readable in a failing test."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # as for any dataclass that is not frozen

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"
