"""Every declared setting keeps its own promises."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.config.declare import Declaration, SettingKind, Value, declarations_of
from strandline.config.group import GROUP_DECLARATIONS
from strandline.config.remote import METADATA_PREFIX, STORAGE_PREFIX
from strandline.config.settings import AREAS, BROKER_DECLARATIONS
from strandline.config.share_group import SHARE_GROUP_DECLARATIONS
from strandline.config.topic import TOPIC_DECLARATIONS, TopicConfig
from strandline.errors import InvalidConfig
from tests.config.refusals import refusal_of
from tests.config.strategies import illegal_numbers, legal_values

ALL = [*BROKER_DECLARATIONS.values(), *TOPIC_DECLARATIONS.values()]


@pytest.mark.parametrize("declaration", ALL, ids=lambda declaration: declaration.name)
def test_default_is_legal_and_survives_its_text_form(declaration: Declaration) -> None:
    declaration.check(declaration.default)
    text = declaration.text_of(declaration.default)
    if text is not None:
        assert declaration.parse(text) == declaration.default


@pytest.mark.parametrize("declaration", ALL, ids=lambda declaration: declaration.name)
def test_numbers_outside_the_range_are_refused_with_the_name_and_the_range(declaration: Declaration) -> None:
    for number in illegal_numbers(declaration):
        with pytest.raises(InvalidConfig) as caught:
            declaration.parse(str(number))
        assert str(caught.value) == f"{declaration.name} must be {declaration.legal()}, but is '{number}'."


@pytest.mark.parametrize("declaration", ALL, ids=lambda declaration: declaration.name)
def test_help_is_one_or_more_sentences(declaration: Declaration) -> None:
    assert declaration.help.endswith(".")
    assert "\n" not in declaration.help


@given(st.sampled_from(ALL).flatmap(lambda declaration: st.tuples(st.just(declaration), legal_values(declaration))))
def test_every_legal_value_survives_its_text_form(pair: tuple[Declaration, Value]) -> None:
    declaration, value = pair
    text = declaration.text_of(value)
    assert text is not None
    assert declaration.parse(text) == value
    assert declaration.parse(f"  {text}\t") == value or declaration.kind is SettingKind.PASSWORD


@given(st.sampled_from(ALL), st.text(max_size=20))
def test_any_text_is_taken_or_refused_never_worse(declaration: Declaration, text: str) -> None:
    refusal = refusal_of(lambda: declaration.check(declaration.parse(text)))
    assert refusal is None or refusal.startswith(declaration.name)


@pytest.mark.parametrize("text", ["1_000", "१२", "0x10", "1e3", "", " ", "10 000", "9" * 5000])
def test_a_whole_number_is_written_as_in_java(text: str) -> None:
    with pytest.raises(InvalidConfig, match="whole number"):
        BROKER_DECLARATIONS["num.partitions"].parse(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_0.5", "", "0.5.5"])
def test_a_number_is_finite_and_written_in_digits(text: str) -> None:
    with pytest.raises(InvalidConfig):
        TOPIC_DECLARATIONS["min.cleanable.dirty.ratio"].parse(text)


def test_a_sensitive_value_is_not_repeated_in_its_refusal() -> None:
    declaration = dataclasses.replace(BROKER_DECLARATIONS["strandline.metadata.url"], allowed=("x",))
    with pytest.raises(InvalidConfig) as caught:
        declaration.parse("postgresql://me:secret@host/db")
    assert "secret" not in str(caught.value)


def test_no_setting_is_declared_twice_and_attributes_follow_names() -> None:
    names = [name for area in AREAS.values() for name in declarations_of(area)]
    assert len(names) == len(set(names))
    for area in (*AREAS.values(), TopicConfig):
        attributes = [declaration.attribute for declaration in declarations_of(area).values()]
        assert attributes == [field.name for field in dataclasses.fields(area)]


def test_every_topic_setting_follows_a_broker_setting_with_the_same_range() -> None:
    for declaration in TOPIC_DECLARATIONS.values():
        if declaration.broker_name is None:
            continue
        broker = BROKER_DECLARATIONS[declaration.broker_name]
        assert broker.kind is declaration.kind
        assert broker.most == declaration.most
        assert broker.allowed == declaration.allowed


_READING = re.compile(r"\.(?P<attribute>\w+)|\"(?=(?P<text>\w+)\")")


def _names_read(*, without: str) -> set[str]:
    """Names that stand behind a dot or alone in a string, in the code that could read a setting.

    Not in the generated messages, which have fields of the same names.
    """
    root = Path(strandline.__file__).parent
    files = (path for path in root.rglob("*.py") if not {"messages", without} & set(path.relative_to(root).parts))
    return {found["attribute"] or found["text"] for path in files for found in _READING.finditer(path.read_text())}


def test_every_setting_is_read_somewhere_or_says_that_it_has_no_effect() -> None:
    everywhere, components = _names_read(without=""), _names_read(without="config")
    followers = (
        *TOPIC_DECLARATIONS.values(),
        *GROUP_DECLARATIONS.values(),
        *SHARE_GROUP_DECLARATIONS.values(),
    )
    followed = {declaration.broker_name for declaration in followers}
    for declaration in ALL:
        if declaration.name.startswith((STORAGE_PREFIX, METADATA_PREFIX)):
            continue  # handed on as text, to classes that may come from elsewhere
        if declaration.no_effect:
            assert declaration.documentation.endswith(f" No effect: {declaration.no_effect}.")
            assert declaration.attribute not in components, f"{declaration.name} is read, so it has an effect"
        else:
            is_read = declaration.attribute in everywhere or declaration.name in followed
            assert is_read, f"nothing reads {declaration.name}"
