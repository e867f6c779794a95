"""Addresses of object stores: the scheme says which kind of store, the rest says where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strandline.objects.keys import is_key
from strandline.objects.store import ObjectStoreMisconfigured

_BUCKETS: Final = frozenset({"s3", "gs", "az"})
_EXAMPLES: Final = "file:///var/lib/strandline/objects, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix"


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """Where a store is. A directory has only a path, a bucket has a name and may have a prefix."""

    scheme: str
    bucket: str
    path: str

    @property
    def url(self) -> str:
        """The address as people write it. It never holds credentials."""
        return f"{self.scheme}://{'/'.join(part for part in (self.bucket, self.path) if part)}"


def parse_address(url: str) -> ObjectAddress:
    """Parse an address. Raises ObjectStoreMisconfigured.

    The text after file:// is a path, absolute or relative to the working directory. memory:// takes nothing.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _BUCKETS | {"file", "memory"}:
        given = f"{scheme}://…" if separator else "This"
        raise ObjectStoreMisconfigured(f"{given} is not an address of an object store: use {_EXAMPLES} or memory://.")
    if scheme == "file":
        if not rest or "\0" in rest:
            raise ObjectStoreMisconfigured("file:// needs the path of a directory: file:///var/lib/strandline/objects.")
        return ObjectAddress(scheme, "", rest)
    if scheme == "memory":
        if rest.strip("/"):
            raise ObjectStoreMisconfigured("memory:// takes no name: every use of it is a new, empty store.")
        return ObjectAddress(scheme, "", "")
    return _bucket(scheme, rest)


def _bucket(scheme: str, rest: str) -> ObjectAddress:
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    if "@" in bucket:
        raise ObjectStoreMisconfigured(
            f"{scheme}://… has an @ before the bucket. An address must not hold credentials: use the settings or the "
            "environment."
        )
    if not bucket:
        raise ObjectStoreMisconfigured(f"{scheme}:// needs the name of a bucket: {scheme}://bucket/prefix.")
    if prefix and not is_key(prefix):
        raise ObjectStoreMisconfigured(f"{scheme}://{bucket}/… has a prefix that cannot be part of a key: {prefix!r}.")
    return ObjectAddress(scheme, bucket, prefix)
