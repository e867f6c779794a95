"""Translates errors of the operating system."""

from __future__ import annotations

import errno
from typing import Final

from strandline.objects.store import (
    AccessRefused,
    ObjectNotFound,
    ObjectStoreError,
    ObjectStoreUnavailable,
)

_RIGHTS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_IN_THE_WAY: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY})
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})


def reading_error(error: OSError, key: str, url: str) -> ObjectStoreError:
    """Why an object cannot be read."""
    if error.errno in _ABSENT:
        return ObjectNotFound(f"There is no object {key} in {url}.")
    return general_error(error, f"read object {key}", url)


def writing_error(error: OSError, key: str, url: str) -> ObjectStoreError:
    """Why an object cannot be written."""
    if error.errno in _IN_THE_WAY:
        return ObjectStoreError(
            f"Object {key} cannot be written to {url}: in a directory no key can begin with another key and a slash."
        )
    return general_error(error, f"write object {key}", url)


def general_error(error: OSError, action: str, url: str) -> ObjectStoreError:
    """Why any other operation failed."""
    reason = error.strerror or str(error)
    if error.errno in _RIGHTS:
        return AccessRefused(
            f"Cannot {action} in {url}: {reason}. The user of this process needs the right to read and write there."
        )
    if error.errno in _FULL:
        return ObjectStoreUnavailable(
            f"Cannot {action} in {url}: the disk is full ({reason}). Free some space there; nothing needs a restart."
        )
    # Too many open files, a lost network file system: an operator may repair it while we retry. After a
    # failed fsync a new file is written; the same file is never fsynced again.
    return ObjectStoreUnavailable(f"Cannot {action} in {url}: {reason}.")
