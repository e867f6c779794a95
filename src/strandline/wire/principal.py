"""A principal ("User:alice") as Kafka's brokers pass it on in an Envelope: a version, its type, its name."""

from __future__ import annotations

from struct import Struct
from typing import Final

from strandline.wire.primitives import (
    DECODING_FAILURES,
    MalformedRequest,
    read_compact_string,
    skip_tags,
    truncated,
    write_compact_string,
)

_VERSION: Final = Struct(">h")
_NEWEST: Final = 0


def encode_principal(principal: str) -> bytes:
    """A principal of the form "type:name", not authenticated by a token."""
    kind, _, name = principal.partition(":")
    out = bytearray(_VERSION.pack(_NEWEST))
    write_compact_string(out, kind)
    write_compact_string(out, name)
    out += b"\x00\x00"  # no token; no tagged fields
    return bytes(out)


def decode_principal(data: bytes) -> str:
    """The principal as "type:name". Raises MalformedRequest."""
    view = memoryview(data)
    try:
        (version,) = _VERSION.unpack_from(view)
        if version != _NEWEST:
            raise MalformedRequest(f"Version {version} of a principal is not known.")
        kind, position = read_compact_string(view, _VERSION.size)
        name, position = read_compact_string(view, position)
        skip_tags(view, position + 1)
    except DECODING_FAILURES as error:
        raise truncated("The principal") from error
    return f"{kind}:{name}"
