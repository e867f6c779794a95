"""Translates errors of obstore.

The library has classes for the common refusals and one for everything else, whose text holds the HTTP status; the
status decides whether a retry can help.
"""

from __future__ import annotations

import re
from typing import Final

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from strandline.objects.store import (
    AccessRefused,
    NoSuchBucket,
    ObjectExists,
    ObjectNotFound,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    ObjectStoreUnavailable,
)

# What the library raises: its own errors, FileNotFoundError for a missing object, ValueError for a wrong argument.
LIBRARY_ERRORS: Final = (BaseError, OSError, ValueError, NotImplementedError)

_STATUS: Final = re.compile(r"status(?: code)?:? (\d{3})")
# The library says how long a failed request took. Without it, one reason is one sentence.
_DURATION: Final = re.compile(r" in [\d.]+(?:ns|µs|ms|s)\b")
# Where a machine in the cloud finds its own credentials; asked when no others are set.
_METADATA_SERVICE: Final = "169.254.169.254"
_LATER: Final = frozenset({408, 409, 425, 429})
_REFUSALS: Final = range(400, 500)
_MISCONFIGURED: Final = (
    UnknownConfigurationKeyError,
    NotSupportedError,
    NotImplementedError,
)


def translate(error: Exception, action: str, url: str) -> ObjectStoreError:
    """Our error for a failed call. `action` says what was tried: "read object KEY from"."""
    text = _DURATION.sub("", str(error).partition("\n\nDebug source")[0]) or type(error).__name__
    if "NoSuchBucket" in text or "ContainerNotFound" in text or "bucket does not exist" in text:
        return NoSuchBucket(f"Cannot {action} {url}: there is no such bucket. Create it, or name another.")
    if isinstance(error, FileNotFoundError):
        return ObjectNotFound(f"Cannot {action} {url}: there is no such object.")
    if isinstance(error, AlreadyExistsError) and "ConditionalRequestConflict" not in text:
        return ObjectExists(f"Cannot {action} {url}: the object exists already.")
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return AccessRefused(f"Cannot {action} {url}: check credentials, rights and region. {_sentence(text)}")
    if isinstance(error, _MISCONFIGURED):
        return ObjectStoreMisconfigured(
            f"Cannot {action} {url}: check credentials, rights and region. {_sentence(text)}"
        )
    if isinstance(error, InvalidPathError | ValueError):
        return ObjectStoreError(f"Cannot {action} {url}: {_sentence(text)}")
    return _by_status(text, f"Cannot {action} {url}: {_sentence(text)}")


def status_of(error: Exception) -> int | None:
    """The HTTP status in the text of an error."""
    match = _STATUS.search(str(error))
    return int(match[1]) if match else None


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _by_status(text: str, message: str) -> ObjectStoreError:
    if "redirect without LOCATION" in text:
        return ObjectStoreMisconfigured(f"{message} The bucket is in another region: check region and endpoint.")
    if _METADATA_SERVICE in text:
        return ObjectStoreUnavailable(f"{message} No credentials are set, and the machine has none of its own.")
    match = _STATUS.search(text)
    status = int(match[1]) if match else 0
    if status in _REFUSALS and status not in _LATER:
        return ObjectStoreError(message)
    return ObjectStoreUnavailable(message)
