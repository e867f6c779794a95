"""Finds the errors in an answer, wherever its API puts them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from strandline.wire.structure import Structure

_ERROR_CODE: Final = "error_code"


def error_codes(answer: Structure) -> Iterator[int]:
    """Every error code of the answer and of the structures in it that is not 0."""
    code = getattr(answer, _ERROR_CODE, 0)
    if code:
        yield code
    for name in _lists_of(type(answer)):  # type: ignore[arg-type]  # its instances cannot be hashed, the class can
        for item in getattr(answer, name) or ():
            yield from error_codes(item)


def count_error_codes(answer: Structure, count: Callable[[int], None]) -> None:
    """Call `count` with each of them. It is asked of every answer, and most have no error: no generators here."""
    code = getattr(answer, _ERROR_CODE, 0)
    if code:
        count(code)
    for name in _lists_of(type(answer)):  # type: ignore[arg-type]
        for item in getattr(answer, name) or ():
            count_error_codes(item, count)


@cache
def _lists_of(kind: type[Any]) -> tuple[str, ...]:
    """The fields that hold structures with errors in them. Annotations of generated classes name their items."""
    names = vars(sys.modules[kind.__module__])
    fields: dict[str, Any] = kind.__annotations__
    return tuple(name for name, annotation in fields.items() if _has_errors(_item(str(annotation), names)))


def _item(annotation: str, names: dict[str, Any]) -> Any:
    """X of `list[X]` or of `list[X] | None`; None if the field is no list."""
    head, _, rest = annotation.partition("list[")
    return None if head else names.get(rest.partition("]")[0])


def _has_errors(kind: Any) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, Structure)):
        return False
    return _ERROR_CODE in kind.__annotations__ or bool(_lists_of(kind))  # type: ignore[arg-type]
