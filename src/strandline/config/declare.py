"""How a setting is declared, and everything that follows from a declaration.

A setting is one field of a frozen dataclass, made with `setting(...)`. Parsing, range checks, the text
form, `DescribeConfigs` and the reference page all read the same declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, Final, TypeAlias

from strandline.errors import InvalidConfig
from strandline.model import INT32_MAX, INT64_MAX

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class SettingKind(Enum):
    """The type of a setting; the value is Kafka's code for it in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Dynamic(Enum):
    """Whether a setting can be changed while the broker runs, and for which brokers; the value is Kafka's word."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


BOOLEAN: Final = SettingKind.BOOLEAN
STRING: Final = SettingKind.STRING
INT: Final = SettingKind.INT
SHORT: Final = SettingKind.SHORT
LONG: Final = SettingKind.LONG
DOUBLE: Final = SettingKind.DOUBLE
LIST: Final = SettingKind.LIST
CLASS: Final = SettingKind.CLASS
PASSWORD: Final = SettingKind.PASSWORD
PER_BROKER: Final = Dynamic.PER_BROKER
CLUSTER_WIDE: Final = Dynamic.CLUSTER_WIDE

_WHOLE_LIMITS: Final[Mapping[SettingKind, tuple[int, int]]] = {
    SettingKind.SHORT: (-(2**15), 2**15 - 1),
    SettingKind.INT: (-INT32_MAX - 1, INT32_MAX),
    SettingKind.LONG: (-INT64_MAX - 1, INT64_MAX),
}
# Java's number syntax: Python's int() and float() would also take underscores and other scripts' digits.
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def attribute_of(name: str) -> str:
    """The attribute under which a setting is found in its area."""
    return name.replace(".", "_").replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One setting as declared: what it is called, what it may hold, and what it is for."""

    name: str
    kind: SettingKind
    default: Value
    help: str
    least: int | float | None = None
    most: int | float | None = None
    also: tuple[int, ...] = ()
    allowed: tuple[str, ...] = ()
    may_be_empty: bool = True
    dynamic: Dynamic = Dynamic.READ_ONLY
    broker_name: str | None = None
    no_effect: str = ""
    is_internal: bool = False
    attribute: str = field(init=False)
    """The name of the dataclass field that holds the value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "attribute", attribute_of(self.name))

    @property
    def documentation(self) -> str:
        """The help, and why the setting has no effect, if it has none."""
        return f"{self.help} No effect: {self.no_effect}." if self.no_effect else self.help

    @property
    def is_sensitive(self) -> bool:
        """True if the value must never be shown."""
        return self.kind is SettingKind.PASSWORD

    def parse(self, text: str) -> Value:
        """The value that `text` stands for. Raises InvalidConfig with the legal range."""
        value = self._read(text)
        if not self._is_legal(value):
            raise self.refusal(text)
        return value

    def check(self, value: Value) -> None:
        """Raise InvalidConfig if `value` is not legal for this setting."""
        if not self._is_legal(value):
            raise self.refusal(self.text_of(value) or "")

    def refusal(self, text: str) -> InvalidConfig:
        """The error for an illegal value: one sentence with the name, the legal range and the value."""
        shown = "the value given" if self.is_sensitive else repr(text)
        return InvalidConfig(f"{self.name} must be {self.legal()}, but is {shown}.")

    def text_of(self, value: Value) -> str | None:
        """The text form of a value, as Kafka writes it; None stays None."""
        match value:
            case None:
                return None
            case bool():
                return "true" if value else "false"
            case tuple():
                return ",".join(value)
            case float():
                return repr(float(value))
            case _:
                return str(value)

    def legal(self) -> str:
        """What the setting may hold, in words that fit after "must be"."""
        match self.kind:
            case SettingKind.BOOLEAN:
                return "true or false"
            case SettingKind.INT | SettingKind.SHORT | SettingKind.LONG:
                return self._legal_range("a whole number")
            case SettingKind.DOUBLE:
                return self._legal_range("a number")
            case SettingKind.LIST:
                return self._legal_list()
            case _:
                if self.allowed:
                    return f"one of {', '.join(self.allowed)}"
                return "a text" if self.may_be_empty else "a text that is not empty"

    def _read(self, text: str) -> Value:
        stripped = text.strip()
        match self.kind:
            case SettingKind.BOOLEAN:
                return self._read_boolean(stripped)
            case SettingKind.INT | SettingKind.SHORT | SettingKind.LONG:
                if not _WHOLE.fullmatch(stripped) or len(stripped) > 32:
                    raise self.refusal(text)
                return int(stripped)
            case SettingKind.DOUBLE:
                if not _DECIMAL.fullmatch(stripped):
                    raise self.refusal(text)
                return float(stripped)
            case SettingKind.LIST:
                return tuple(part.strip() for part in stripped.split(",")) if stripped else ()
            case SettingKind.PASSWORD:
                return text
            case _:
                return stripped

    def _read_boolean(self, text: str) -> bool:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise self.refusal(text)
        return lowered == "true"

    def _is_legal(self, value: Value) -> bool:
        match value:
            case None:
                return self.default is None
            case bool():
                return self.kind is SettingKind.BOOLEAN
            case int() | float():
                return self._is_in_range(value)
            case tuple():
                return self._is_legal_list(value)
            case str():
                return (not self.allowed or value in self.allowed) and (self.may_be_empty or bool(value))

    def _is_in_range(self, value: int | float) -> bool:
        least, most = self._limits()
        return value in self.also or ((least is None or value >= least) and (most is None or value <= most))

    def _is_legal_list(self, value: tuple[str, ...]) -> bool:
        if not value:
            return self.may_be_empty
        if len(set(value)) != len(value) or "" in value:
            return False
        return not self.allowed or set(value) <= set(self.allowed)

    def _limits(self) -> tuple[int | float | None, int | float | None]:
        least, most = _WHOLE_LIMITS.get(self.kind, (None, None))
        return (least if self.least is None else self.least), (most if self.most is None else self.most)

    def _legal_range(self, what: str) -> str:
        least, most = self._limits()
        if least is None and most is None:
            return what
        also = "".join(f", or {value}" for value in self.also)
        if most is None:
            return f"{what} of at least {least}{also}"
        if least is None:
            return f"{what} of at most {most}{also}"
        return f"{what} from {least} to {most}{also}"

    def _legal_list(self) -> str:
        some = "a list without repetitions" if self.may_be_empty else "a list of one or more, without repetitions"
        return f"{some}, out of {', '.join(self.allowed)}" if self.allowed else some


def setting(name: str, kind: SettingKind, default: Value, help: str, **rules: Any) -> Any:
    """A dataclass field for the setting `name`.

    `rules` are the further fields of `Declaration`: `least`, `most`, `also` (legal numbers outside the
    range), `allowed`, `may_be_empty`, `dynamic`, `broker_name` (topic settings: the broker setting they
    fall back to), `no_effect` (the reason, for a setting that nothing reads) and `is_internal`. A default of
    None means "not set", and makes None legal.
    """
    declaration = Declaration(name=name, kind=kind, default=default, help=help, **rules)
    return field(default=default, metadata={"declaration": declaration})


@cache
def declarations_of(area: type) -> Mapping[str, Declaration]:
    """Every setting of an area, by name, in the order of declaration."""
    found = (member.metadata.get("declaration") for member in fields(area))
    return {declaration.name: declaration for declaration in found if declaration is not None}


def parse_area(area: type, values: Mapping[str, str]) -> dict[str, Value]:
    """Constructor arguments for `area` out of those of `values` that belong to it."""
    declared = declarations_of(area)
    return {declared[name].attribute: declared[name].parse(text) for name, text in values.items() if name in declared}
