"""Reading Java `.properties` text, the format of Kafka's configuration files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from strandline.errors import InvalidConfig

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def parse_properties(text: str) -> dict[str, str]:
    r"""The entries of a `.properties` text; a later entry replaces an earlier one of the same name.

    The rules are Java's: comments start with `#` or `!`; a line that ends in an odd number of backslashes continues on
    the next one; name and value are separated by `=`, `:` or blanks; `\t`, `\n`, `\r`, `\f` and `\uXXXX` are escapes,
    and any other escaped character stands for itself. Raises InvalidConfig for a broken `\u` escape, with the line.
    """
    entries: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line)
        entries[_unescape(name, number)] = _unescape(value, number)
    return entries


def load_properties(path: Path) -> dict[str, str]:
    """The entries of a file in UTF-8. Raises InvalidConfig if it cannot be read."""
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"The configuration file {path} cannot be read: {error}.") from error


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with continuations joined and comments and blank lines left out, with their numbers."""
    pending: str | None = None
    start = 0
    for number, raw in enumerate(_physical_lines(text), 1):
        line = raw.lstrip(_BLANKS)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            start, pending = number, ""
        pending += line
        if _is_continued(line):
            pending = pending[:-1]
            continue
        if pending:
            yield start, pending
        pending = None
    if pending:
        yield start, pending


def _physical_lines(text: str) -> list[str]:
    # Not str.splitlines(): it also splits at characters that are part of a value in Java.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\" or position == len(text):
            out.append(char if char != "\\" else "")
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            out.append(_code_unit(text[position : position + 4], line))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Characters beyond the basic plane are written as two escaped surrogates.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_unit(digits: str, line: int) -> str:
    if len(digits) != 4 or not set(digits) <= _HEX:
        raise InvalidConfig(f"Line {line} of the properties has a broken \\u escape: it needs four hexadecimal digits.")
    return chr(int(digits, 16))
