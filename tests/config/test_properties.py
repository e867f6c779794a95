"""Java's rules for `.properties`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.config.properties import load_properties, parse_properties
from strandline.errors import InvalidConfig
from tests.config.refusals import refusal_of

# Without lone surrogates: a file in UTF-8 cannot hold them.
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def _written(entries: Mapping[str, str]) -> str:
    """Properties as a careful writer writes them."""
    pairs = [(_escaped(name, is_name=True), _escaped(value, is_name=False)) for name, value in entries.items()]
    return "".join(f"{name}={value}\n" for name, value in pairs)


def _escaped(text: str, *, is_name: bool) -> str:
    out: list[str] = []
    for index, char in enumerate(text):
        if char in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
        elif char in "\\=:#!" or (char == " " and (is_name or index == 0)):
            out.append("\\" + char)
        else:
            out.append(char)
    return "".join(out)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=b", {"a": "b"}),
        ("a:b\nc d\n e\t=\tf ", {"a": "b", "c": "d", "e": "f "}),
        ("# note\n! note\n\n  # note\na=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("= b", {"": "b"}),
        ("a==b", {"a": "=b"}),
        ("a = b = c", {"a": "b = c"}),
        ("hosts=one,\\\n      two,\\\n\tthree", {"hosts": "one,two,three"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=one\\\n#two", {"a": "one#two"}),
        ("# note \\\na=1", {"a": "1"}),
        ("a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=x y", {"a": "x y"}),
        ("path=C\\:\\\\logs", {"path": "C:\\logs"}),
        ("", {}),
        ("\\\n\\\n", {}),
    ],
)
def test_text_means_what_it_means_in_java(text: str, entries: dict[str, str]) -> None:
    assert parse_properties(text) == entries


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uXYZW", "\\u 123=b"])
def test_a_broken_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InvalidConfig, match="Line 2 of the properties"):
        parse_properties("first=1\n" + text)


@given(st.dictionaries(_texts, _texts, max_size=5))
def test_what_is_written_is_read_back(entries: dict[str, str]) -> None:
    assert parse_properties(_written(entries)) == entries


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    refusal = refusal_of(lambda: parse_properties(text))
    assert refusal is None or "escape" in refusal


def test_a_file_is_read_in_utf8(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("broker.rack=zürich\n", encoding="utf-8")
    assert load_properties(path) == {"broker.rack": "zürich"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"missing\.properties cannot be read"):
        load_properties(tmp_path / "missing.properties")
    binary = tmp_path / "binary.properties"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidConfig, match=r"binary\.properties cannot be read"):
        load_properties(binary)
