"""The schema of Kafka's messages for `generate_messages`: the union of all versions of each, taken from kio.

kio has one class per message and version. A broker wants one class per message, so the versions are merged here:
each field remembers in which versions it exists, where it may be null and whether it is tagged.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from kio.serial._introspect import EntityField, EntityTupleField, classify_field, is_optional

# kio turns these into rich types and drops the suffix of the name. We keep plain numbers and Kafka's names.
_RENAMED_TYPES = {"timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}
_ALIASED_TYPES = {"error_code": "int16"}
FIXED_CODES = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d"}
FIXED_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8}


@dataclasses.dataclass(frozen=True)
class Versions:
    """A contiguous range of versions, both ends included."""

    low: int
    high: int

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Versions:
        found = sorted(numbers)
        if found != list(range(found[0], found[-1] + 1)):
            raise ValueError(f"The versions {found} have a gap.")
        return cls(found[0], found[-1])


@dataclasses.dataclass
class FieldSpec:
    """One field over all versions. `struct` is set when the element type is a nested struct."""

    name: str
    base: str
    struct: StructSpec | None
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: object

    @property
    def is_fixed(self) -> bool:
        return not self.is_array and self.tag is None and self.base in FIXED_CODES

    @property
    def is_always_nullable(self) -> bool:
        return self.nullable == self.versions


@dataclasses.dataclass
class StructSpec:
    """One struct over all versions."""

    name: str
    versions: Versions
    fields: list[FieldSpec] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class MessageSpec:
    """A request, a response or a data blob: its root struct, and all structs with the nested ones first."""

    root: StructSpec
    structs: list[StructSpec]
    first_flexible: int | None


_MISSING = dataclasses.MISSING

# Tagged fields of our own, between our brokers: Kafka's brokers and clients pass over tags that they do not know.
_OWN_TAG = 10_000
_OWN_FIELDS: Mapping[str, tuple[str, str, object]] = {
    "AddPartitionsToTxnResult": ("transaction_start_ms", "int64", -1),
    "WritableTxnMarker": ("transaction_start_ms", "int64", -1),
}


def load_message(schema: str, kind: str, versions: Iterable[int]) -> MessageSpec:
    """Merge `kio.schema.<schema>.v<N>.<kind>` over `versions`."""
    classes: dict[str, dict[int, type]] = {}
    flexible: list[int] = []
    root = ""
    numbers = sorted(versions)
    for version in numbers:
        module = importlib.import_module(f"kio.schema.{schema}.v{version}.{kind}")
        for name, value in vars(module).items():
            if dataclasses.is_dataclass(value) and isinstance(value, type) and value.__module__ == module.__name__:
                classes.setdefault(name, {})[version] = value
                root = name  # the last class of a module is the message itself
        if vars(module)[root].__flexible__:
            flexible.append(version)
    if flexible and flexible != numbers[numbers.index(flexible[0]) :]:
        raise ValueError(f"{schema} is flexible in {flexible} only.")
    specs = {name: StructSpec(name, Versions.of(by_version)) for name, by_version in classes.items()}
    for name, by_version in classes.items():
        specs[name].fields = _merge_fields(by_version, specs)
        if name in _OWN_FIELDS and flexible:
            own = Versions(max(flexible[0], min(by_version)), max(by_version))
            specs[name].fields.append(_own_field(*_OWN_FIELDS[name], own))
    return MessageSpec(specs[root], _nested_first(specs[root]), flexible[0] if flexible else None)


def _own_field(name: str, base: str, default: object, versions: Versions) -> FieldSpec:
    return FieldSpec(
        name=name,
        base=base,
        struct=None,
        is_array=False,
        versions=versions,
        nullable=None,
        tag=_OWN_TAG,
        default=default,
    )


def _nested_first(root: StructSpec) -> list[StructSpec]:
    found: list[StructSpec] = []

    def visit(struct: StructSpec) -> None:
        for field in struct.fields:
            if field.struct is not None:
                visit(field.struct)
        if struct not in found:
            found.append(struct)

    visit(root)
    return found


def _merge_fields(by_version: Mapping[int, type], specs: Mapping[str, StructSpec]) -> list[FieldSpec]:
    order: list[str] = []
    found: dict[str, dict[int, dataclasses.Field[Any]]] = {}
    for version in sorted(by_version, reverse=True):
        position = 0
        for field in dataclasses.fields(by_version[version]):
            if field.name in found:
                position = order.index(field.name) + 1
            else:
                order.insert(position, field.name)
                position += 1
            found.setdefault(field.name, {})[version] = field
    return [_merge_field(found[name], specs) for name in order]


def _merge_field(by_version: Mapping[int, dataclasses.Field[Any]], specs: Mapping[str, StructSpec]) -> FieldSpec:
    newest = by_version[max(by_version)]
    kinds = {_kind(field) for field in by_version.values()}
    tags = {field.metadata.get("tag") for field in by_version.values()}
    if len(kinds) != 1 or len(tags) != 1:
        raise ValueError(f"{newest.name} changes its type or tag between versions: {kinds} {tags}.")
    ((raw, struct_name, is_array),) = kinds
    base = _ALIASED_TYPES.get(raw, _RENAMED_TYPES.get(raw, raw))
    nullable = [version for version, field in by_version.items() if _is_nullable(field, base, is_array)]
    return FieldSpec(
        name=f"{newest.name}_ms" if raw in _RENAMED_TYPES else newest.name,
        base=base,
        struct=specs[struct_name] if struct_name else None,
        is_array=is_array,
        versions=Versions.of(by_version),
        nullable=Versions.of(nullable) if nullable else None,
        tag=tags.pop(),
        default=_default(newest, base, is_array, bool(nullable)),
    )


def _kind(field: dataclasses.Field[Any]) -> tuple[str, str | None, bool]:
    match classify_field(field):
        case EntityField(type_=cls):
            return "struct", cls.__name__, False
        case EntityTupleField(type_=cls):
            return "struct", cls.__name__, True
        case other:
            return field.metadata["kafka_type"], None, other.is_array


def _is_nullable(field: dataclasses.Field[Any], base: str, is_array: bool) -> bool:
    if is_array:
        return not isinstance(field.type, str) and type(None) in getattr(field.type, "__args__", ())
    # kio shows the zero UUID and the timestamp -1 as None; on the wire, and for us, they are plain values.
    return base not in ("uuid", "int64") and is_optional(field)


def _default(field: dataclasses.Field[Any], base: str, is_array: bool, nullable: bool) -> object:
    value: object = field.default
    if is_array:
        return None if value is None else []
    if base == "struct":
        return None if nullable else value
    if value is _MISSING:
        return None if nullable and field.name == "error_message" else _ZERO[base]
    return _plain(value, base)


_ZERO: Mapping[str, object] = {
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": uuid.UUID(int=0),
    "bool": False,
    "float64": 0.0,
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "int64"), 0),
}


def _plain(value: object, base: str) -> object:
    if value is None and base in ("uuid", "int64"):
        return _ZERO[base] if base == "uuid" else -1
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bool) or value is None:
        return value
    for plain in (int, float, str):
        if isinstance(value, plain):
            return plain(value)
    return value
