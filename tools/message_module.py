"""The source of one generated message module: imports, dataclasses, readers and writers."""

from __future__ import annotations

import dataclasses
import keyword
import re

from message_schema import FIXED_CODES, FIXED_SIZES, FieldSpec, MessageSpec, StructSpec, Versions

PYTHON_TYPES = {
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "UUID",
    "bool": "bool",
    "float64": "float",
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "int64"), "int"),
}
_NUMBER_NAMES = {"?": "BOOL", "b": "INT8", "h": "INT16", "H": "UINT16", "i": "INT32", "q": "INT64", "d": "FLOAT64"}
_RESERVED = {"buffer", "position", "version", "flexible", "message", "out", "count", "tag", "start", "end", "value"}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def local(name: str) -> str:
    return f"{name}_" if name in _RESERVED or keyword.iskeyword(name) else name


def condition(inner: Versions, outer: Versions) -> str | None:
    """The test whether a version of `outer` is in `inner`; None if all of them are."""
    above, below = inner.low > outer.low, inner.high < outer.high
    if above and below:
        return f"version == {inner.low}" if inner.low == inner.high else f"{inner.low} <= version <= {inner.high}"
    if above:
        return f"version >= {inner.low}"
    return f"version <= {inner.high}" if below else None


def presence(inner: Versions, outer: Versions) -> str:
    """A comment that says in which versions a field exists; empty if in all."""
    if inner == outer:
        return ""
    if inner.high == outer.high:
        return f"  # from version {inner.low} on"
    return f"  # up to version {inner.high}" if inner.low == outer.low else f"  # versions {inner.low} to {inner.high}"


def element_type(field: FieldSpec) -> str:
    return field.struct.name if field.struct else PYTHON_TYPES[field.base]


def python_type(field: FieldSpec) -> str:
    text = f"list[{element_type(field)}]" if field.is_array else element_type(field)
    return f"{text} | None" if field.nullable or field.base == "records" else text


class ModuleSource:
    """Collects the text of one module; `text()` gives it, unformatted."""

    def __init__(self, schema: str, messages: list[MessageSpec], *, is_hot: bool = False) -> None:
        """`is_hot`: the module is compiled. Its classes stay classes of Python, with slots and the base of all."""
        self._schema = schema
        self._decorators = [_NOT_NATIVE, _DATACLASS] if is_hot else [_DATACLASS]
        self._messages = messages
        self._structs: set[str] = set()
        self._lines: list[str] = []

    def text(self) -> str:
        self._resolve_clashes()
        seen: set[str] = set()
        for message in self._messages:
            for struct in message.structs:
                if struct.name not in seen:
                    seen.add(struct.name)
                    self._dataclass(struct)
        seen.clear()
        for message in self._messages:
            for struct in message.structs:
                if struct.name not in seen:
                    seen.add(struct.name)
                    StructCodec(struct, message.first_flexible, self._lines, self._structs).emit()
            self._public(message.root)
        structs = [f"{struct_name(codes)} = Struct('>{codes}')" for codes in sorted(self._structs)]
        return "\n".join([self._head(), *structs, "", *self._lines]) + "\n"

    def _resolve_clashes(self) -> None:
        """Request and response may use one name for two structs; then each side's name says which it is."""
        if len(self._messages) < 2:
            return
        request, response = ({s.name: s for s in m.structs} for m in self._messages)
        for name in request.keys() & response.keys():
            if request[name] != response[name]:
                request[name].name, response[name].name = f"Request{name}", f"Response{name}"

    def _head(self) -> str:
        title = self._messages[0].root.name if len(self._messages) == 1 else self._schema.replace("_", " ")
        return (
            f'"""Messages of {title}. Written by tools/generate_messages.py: do not edit."""\n\n'
            "# ruff: noqa: C901, RUF100\n\n"
            "from __future__ import annotations\n\n"
            "from dataclasses import dataclass, field\n"
            "from struct import Struct\n"
            "from typing import Final\n"
            "from uuid import UUID\n\n"
            "from strandline.compiled.attributes import mypyc_attr\n"
            "from strandline.model import ZERO_UUID\n"
            "from strandline.wire.structure import Structure\n"
            f"from strandline.wire.primitives import {', '.join(_PRIMITIVES)}\n"
        )

    def _dataclass(self, struct: StructSpec) -> None:
        self._lines += ["", *self._decorators, f"class {struct.name}(Structure):"]
        self._lines.append(f'    """Versions {struct.versions.low} to {struct.versions.high}."""')
        self._lines.append("")
        for spec in struct.fields:
            note = presence(spec.versions, struct.versions)
            self._lines.append(f"    {spec.name}: {python_type(spec)} = {field_default(spec)}{note}")
        if not struct.fields:
            self._lines.pop()

    def _public(self, root: StructSpec) -> None:
        name, title = snake(root.name), root.name
        self._lines += [
            "",
            f"def read_{name}(buffer: memoryview, position: int, version: int) -> tuple[{title}, int]:",
            f'    """Read a {title}. Raises MalformedRequest."""',
            "    try:",
            f"        return _read_{name}(buffer, position, version)",
            "    except DECODING_FAILURES as error:",
            f'        raise truncated("{title}") from error',
            "",
            "",
            f"def write_{name}(out: bytearray, message: {title}, version: int) -> None:",
            f'    """Append a {title} to `out`."""',
            f"    _write_{name}(out, message, version)",
            "",
        ]


_NOT_NATIVE = "@mypyc_attr(native_class=False)"
_DATACLASS = "@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)"
_VARIANTS = ("", "nullable_", "compact_", "compact_nullable_")
_PRIMITIVES = [
    "DECODING_FAILURES",
    "null_error",
    "read_numbers",
    "read_tag",
    "read_uuid",
    "read_uvarint",
    "skip_tags",
    "truncated",
    "write_compact_numbers",
    "write_numbers",
    "write_tagged_field",
    "write_uvarint",
    *(f"read_{variant}{kind}" for variant in _VARIANTS for kind in ("string", "bytes", "array_length")),
    *(f"write_{variant}{kind}" for variant in _VARIANTS for kind in ("string", "bytes")),
    "write_array_length",
    "write_compact_array_length",
]


def struct_name(codes: str) -> str:
    return "_" + "_".join(_NUMBER_NAMES[code] for code in codes)


def literal(spec: FieldSpec) -> str:
    """The default as an expression, except for lists and structs, which need a factory in a class."""
    if spec.is_array:
        return "None" if spec.default is None else "[]"
    if spec.struct is not None:
        return "None" if spec.nullable else f"{spec.struct.name}()"
    return "ZERO_UUID" if spec.base == "uuid" else repr(spec.default)


def field_default(spec: FieldSpec) -> str:
    text = literal(spec)
    if text == "[]":
        return "field(default_factory=list)"
    return f"field(default_factory={spec.struct.name})" if spec.struct and text != "None" else text


def least_size(struct: StructSpec, flexible: bool) -> int:
    """The fewest bytes an element of this type takes in any version; at least one."""
    total = 0
    for spec in struct.fields:
        if spec.versions == struct.versions and spec.tag is None:
            if spec.is_array or spec.base in ("string", "bytes", "records"):
                total += 1 if flexible else 2
            elif spec.struct is not None:
                total += 1 if spec.nullable else least_size(spec.struct, flexible)
            else:
                total += FIXED_SIZES.get(spec.base, 16)
    return max(1, total)


@dataclasses.dataclass
class StructCodec:
    """Emits `_read_<struct>` and `_write_<struct>`."""

    struct: StructSpec
    first_flexible: int | None
    lines: list[str]
    packers: set[str]

    def __post_init__(self) -> None:
        versions = self.struct.versions
        self.always = self.first_flexible is not None and self.first_flexible <= versions.low
        self.never = self.first_flexible is None or self.first_flexible > versions.high
        self.plain = [spec for spec in self.struct.fields if spec.tag is None]
        self.tagged = sorted((s for s in self.struct.fields if s.tag is not None), key=lambda s: s.tag or 0)

    def emit(self) -> None:
        name, title = snake(self.struct.name), self.struct.name
        self.lines += ["", f"def _read_{name}(buffer: memoryview, position: int, version: int) -> tuple[{title}, int]:"]
        self._flexible_line()
        self._read_body()
        arguments = ", ".join(f"{s.name}={local(s.name)}" for s in self.struct.fields)
        self.lines += [f"    return {title}({arguments}), position", "", ""]
        self.lines += [f"def _write_{name}(out: bytearray, message: {title}, version: int) -> None:"]
        self._flexible_line()
        self._write_body()
        self.lines.append("")

    def _flexible_line(self) -> None:
        if not self.always and not self.never:
            self.lines.append(f"    flexible = version >= {self.first_flexible}")

    # Parts that both directions share

    def _groups(self) -> list[tuple[str | None, list[list[FieldSpec]]]]:
        """Fields in order: by condition, and within it runs of numbers that one struct can carry."""
        groups: list[tuple[str | None, list[list[FieldSpec]]]] = []
        for spec in self.plain:
            test = condition(spec.versions, self.struct.versions)
            if not groups or groups[-1][0] != test:
                groups.append((test, []))
            runs = groups[-1][1]
            if runs and runs[-1][0].is_fixed and spec.is_fixed:
                runs[-1].append(spec)
            else:
                runs.append([spec])
        return groups

    def _packer(self, run: list[FieldSpec]) -> tuple[str, int]:
        codes = "".join(FIXED_CODES[spec.base] for spec in run)
        self.packers.add(codes)
        return struct_name(codes), sum(FIXED_SIZES[spec.base] for spec in run)

    def _either(self, function: str, arguments: str) -> str:
        """A call of the legacy or the compact variant, whichever the version has."""
        verb, noun = function.split("_", 1)
        compact, legacy = f"{verb}_compact_{noun}({arguments})", f"{function}({arguments})"
        if self.always:
            return compact
        return legacy if self.never else f"{compact} if flexible else {legacy}"

    def _item(self, spec: FieldSpec) -> str:
        """The name of a loop variable over an array."""
        name = snake(spec.struct.name) if spec.struct else {"string": "text"}.get(spec.base, "element")
        taken = {local(other.name) for other in self.struct.fields} | _RESERVED
        return f"{name}_" if name in taken else name

    def _null_test(self, spec: FieldSpec, value: str, indent: str) -> None:
        """Null is refused in the versions that have the field but not its null."""
        if spec.nullable is None or spec.is_always_nullable:
            return
        test = condition(spec.nullable, spec.versions)
        assert test is not None
        refused = test.replace(">=", "<") if ">=" in test else test.replace("<=", ">")
        if test.count("<=") > 1 or "==" in test:
            refused = f"not {test}"
        self.lines += [f"{indent}if {value} is None and {refused}:", f'{indent}    raise null_error("{spec.name}")']

    # Reading

    def _read_body(self) -> None:
        for test, runs in self._groups():
            indent = "    "
            if test:
                for spec in (spec for run in runs for spec in run):
                    self.lines.append(f"    {local(spec.name)}: {python_type(spec)} = {literal(spec)}")
                self.lines.append(f"    if {test}:")
                indent = "        "
            for run in runs:
                if run[0].is_fixed:
                    self._read_run(run, indent)
                else:
                    self._read_value(run[0], local(run[0].name), indent, declare=test is None)
        self._read_tags()

    def _read_run(self, run: list[FieldSpec], indent: str) -> None:
        packer, size = self._packer(run)
        names = ", ".join(local(spec.name) for spec in run)
        names = f"({names},)" if len(run) == 1 else names
        self.lines += [f"{indent}{names} = {packer}.unpack_from(buffer, position)", f"{indent}position += {size}"]

    def _read_value(self, spec: FieldSpec, name: str, indent: str, *, declare: bool) -> None:
        nullable = "nullable_" if spec.nullable or spec.base == "records" else ""
        if spec.is_array:
            self._read_array(spec, name, indent, nullable, declare=declare)
        elif spec.struct is not None:
            self._read_struct(spec, name, indent, declare=declare)
        elif spec.base == "uuid":
            self.lines.append(f"{indent}{name}, position = read_uuid(buffer, position)")
        elif spec.base in FIXED_CODES:
            self._read_run([dataclasses.replace(spec, name=name)], indent)
        else:
            noun = "bytes" if spec.base == "records" else spec.base
            call = self._either(f"read_{nullable}{noun}", "buffer, position")
            self.lines.append(f"{indent}{name}, position = {call}")
        self._null_test(spec, name, indent)

    def _read_struct(self, spec: FieldSpec, name: str, indent: str, *, declare: bool) -> None:
        assert spec.struct is not None
        call = f"{name}, position = _read_{snake(spec.struct.name)}(buffer, position, version)"
        if not spec.nullable:
            self.lines.append(f"{indent}{call}")
            return
        if declare:
            self.lines.append(f"{indent}{name}: {python_type(spec)} = None")
        self.packers.add("b")
        self.lines += [f"{indent}(marker,) = _INT8.unpack_from(buffer, position)", f"{indent}position += 1"]
        self.lines += [f"{indent}if marker >= 0:", f"{indent}    {call}"]

    def _read_array(self, spec: FieldSpec, name: str, indent: str, nullable: str, *, declare: bool) -> None:
        flexible = self.first_flexible is not None
        if spec.struct is not None:
            size = least_size(spec.struct, flexible)
        else:
            size = FIXED_SIZES.get(spec.base, 16 if spec.base == "uuid" else 1 if flexible else 2)
        call = self._either(f"read_{nullable}array_length", f"buffer, position, {size}")
        self.lines.append(f"{indent}count, position = {call}")
        annotation = f": {python_type(spec)}" if declare else ""
        if nullable:
            if declare:
                self.lines.append(f"{indent}{name}{annotation} = None")
            self.lines.append(f"{indent}if count >= 0:")
            self._read_elements(spec, name, f"{indent}    ", "")
            if not declare and literal(spec) != "None":
                self.lines += [f"{indent}else:", f"{indent}    {name} = None"]
        else:
            self._read_elements(spec, name, indent, annotation)

    def _read_elements(self, spec: FieldSpec, name: str, indent: str, annotation: str) -> None:
        if spec.base in FIXED_CODES:
            call = f'read_numbers(buffer, position, count, "{FIXED_CODES[spec.base]}")'
            self.lines.append(f"{indent}{name}, position = {call}")
            return
        if spec.struct is not None:
            call = f"_read_{snake(spec.struct.name)}(buffer, position, version)"
        elif spec.base == "uuid":
            call = "read_uuid(buffer, position)"
        else:
            call = self._either(f"read_{spec.base}", "buffer, position")
        item = self._item(spec)
        self.lines += [f"{indent}{name}{annotation} = []", f"{indent}for _ in range(count):"]
        self.lines += [f"{indent}    {item}, position = {call}", f"{indent}    {name}.append({item})"]

    def _read_tags(self) -> None:
        if self.never:
            return
        indent = "    " if self.always else "        "
        for spec in self.tagged:
            self.lines.append(f"    {local(spec.name)}: {python_type(spec)} = {literal(spec)}")
        if not self.always:
            self.lines.append("    if flexible:")
        if not self.tagged:
            self.lines.append(f"{indent}position = skip_tags(buffer, position)")
            return
        self.lines += [f"{indent}count, position = read_uvarint(buffer, position)", f"{indent}for _ in range(count):"]
        self.lines.append(f"{indent}    tag, position, end = read_tag(buffer, position)")
        outer = self.struct.versions
        for index, spec in enumerate(self.tagged):
            test = condition(spec.versions, Versions(max(outer.low, self.first_flexible or 0), outer.high))
            word = "elif" if index else "if"
            self.lines.append(f"{indent}    {word} tag == {spec.tag}{f' and {test}' if test else ''}:")
            self._read_value(spec, local(spec.name), f"{indent}        ", declare=False)
        self.lines.append(f"{indent}    position = end")

    # Writing

    def _write_body(self) -> None:
        before = len(self.lines)
        for test, runs in self._groups():
            indent = "    "
            if test:
                self.lines.append(f"    if {test}:")
                indent = "        "
            for run in runs:
                if run[0].is_fixed:
                    packer, _ = self._packer(run)
                    values = ", ".join(f"message.{spec.name}" for spec in run)
                    self.lines.append(f"{indent}out += {packer}.pack({values})")
                else:
                    self._write_value(run[0], indent, "out")
        self._write_tags()
        if len(self.lines) == before:
            self.lines.append("    return")

    def _write_value(self, spec: FieldSpec, indent: str, out: str) -> None:
        value = f"message.{spec.name}"
        self._null_test(spec, value, indent)
        nullable = "nullable_" if spec.nullable or spec.base == "records" else ""
        if spec.is_array:
            self._write_array(spec, value, indent, out)
        elif spec.struct is not None:
            self._write_struct(spec, value, indent, out)
        elif spec.base == "uuid":
            self.lines.append(f"{indent}{out} += {value}.bytes")
        elif spec.base in FIXED_CODES:
            packer, _ = self._packer([spec])
            self.lines.append(f"{indent}{out} += {packer}.pack({value})")
        else:
            self._call(f"write_{nullable}{'bytes' if spec.base == 'records' else spec.base}", f"{out}, {value}", indent)

    def _call(self, function: str, arguments: str, indent: str) -> None:
        text = self._either(function, arguments)
        if " if flexible else " in text:
            compact, legacy = text.split(" if flexible else ")
            self.lines += [f"{indent}if flexible:", f"{indent}    {compact}", f"{indent}else:", f"{indent}    {legacy}"]
        else:
            self.lines.append(f"{indent}{text}")

    def _write_struct(self, spec: FieldSpec, value: str, indent: str, out: str) -> None:
        assert spec.struct is not None
        call = f"_write_{snake(spec.struct.name)}({out}, {value}, version)"
        if not spec.nullable:
            self.lines.append(f"{indent}{call}")
            return
        self.lines += [f"{indent}if {value} is None:", f'{indent}    {out} += b"\\xff"', f"{indent}else:"]
        self.lines += [f'{indent}    {out} += b"\\x01"', f"{indent}    {call}"]

    def _write_array(self, spec: FieldSpec, value: str, indent: str, out: str) -> None:
        if spec.nullable:
            self.lines.append(f"{indent}if {value} is None:")
            self._call("write_array_length", f"{out}, -1", f"{indent}    ")
            self.lines.append(f"{indent}else:")
            indent += "    "
        if spec.base in FIXED_CODES:
            self._call("write_numbers", f'{out}, {value}, "{FIXED_CODES[spec.base]}"', indent)
            return
        self._call("write_array_length", f"{out}, len({value})", indent)
        item = self._item(spec)
        self.lines.append(f"{indent}for {item} in {value}:")
        if spec.struct is not None:
            self.lines.append(f"{indent}    _write_{snake(spec.struct.name)}({out}, {item}, version)")
        elif spec.base == "uuid":
            self.lines.append(f"{indent}    {out} += {item}.bytes")
        else:
            self._call(f"write_{spec.base}", f"{out}, {item}", f"{indent}    ")

    def _write_tags(self) -> None:
        if self.never:
            return
        indent = "    "
        if not self.always:
            self.lines.append("    if flexible:")
            indent = "        "
        if not self.tagged:
            self.lines.append(f'{indent}out += b"\\x00"')
            return
        self.lines += [f"{indent}tagged = bytearray()", f"{indent}count = 0"]
        outer = self.struct.versions
        for spec in self.tagged:
            test = condition(spec.versions, Versions(max(outer.low, self.first_flexible or 0), outer.high))
            differs = self._differs(spec)
            self.lines.append(f"{indent}if {f'{test} and ' if test else ''}{differs}:")
            self.lines.append(f"{indent}    value = bytearray()")
            self._write_value(spec, f"{indent}    ", "value")
            self.lines += [f"{indent}    write_tagged_field(tagged, {spec.tag}, value)", f"{indent}    count += 1"]
        self.lines += [f"{indent}write_uvarint(out, count)", f"{indent}out += tagged"]

    def _differs(self, spec: FieldSpec) -> str:
        """The test whether a tagged field differs from its default, and so has to be written."""
        value, default = f"message.{spec.name}", literal(spec)
        if default == "None":
            return f"{value} is not None"
        if default in ("[]", "False"):
            return value
        return f"not {value}" if default == "True" else f"{value} != {default}"
