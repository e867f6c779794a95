"""Which keys are legal in every store: as the path of a file and as the key of an S3 object."""

from __future__ import annotations

from typing import Final

from strandline.objects.store import ObjectStoreError

# S3 allows 1024 bytes, and the prefix of the address needs some of them. In a directory each part is a file name.
_LONGEST_KEY: Final = 900
_LONGEST_PART: Final = 255


def checked_key(key: str) -> str:
    """The key itself. Raises ObjectStoreError if it is not legal in every store."""
    fault = _fault(key)
    if fault is not None:
        raise ObjectStoreError(f"{key!r} cannot be the key of an object: {fault}.")
    return key


def is_key(key: str) -> bool:
    """True if an object may have this key."""
    return _fault(key) is None


def _fault(key: str) -> str | None:
    parts = key.split("/")
    if "" in parts:
        return "it is empty, begins or ends with a slash, or has two of them side by side"
    if "." in parts or ".." in parts:
        return 'a part of it is "." or ".."'
    if not key.isprintable():  # control characters, and bytes that are not UTF-8
        return "it has a character that cannot be printed"
    if len(key.encode()) > _LONGEST_KEY:
        return f"it is longer than {_LONGEST_KEY} bytes"
    if max(len(part.encode()) for part in parts) > _LONGEST_PART:
        return f"a part of it is longer than {_LONGEST_PART} bytes"
    return None
