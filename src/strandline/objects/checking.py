"""Finds out whether a store can be used, and says which setting to look at if not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from strandline.objects.marker import check_owner, prefix_owner
from strandline.objects.store import (
    AccessRefused,
    ForeignStore,
    NoSuchBucket,
    ObjectNotFound,
    ObjectStore,
    ObjectStoreError,
    ObjectStoreMisconfigured,
)

_CHECK_KEY: Final = "strandline-check"
_TEXT: Final = b"A broker looks whether it may write here. This object can be deleted.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """Where a store is, and which settings say so."""

    url: str
    url_setting: str
    endpoint: str | None
    endpoint_setting: str
    credentials_setting: str

    @property
    def is_bucket(self) -> bool:
        return not self.url.startswith(("file://", "memory://"))

    @property
    def is_lasting(self) -> bool:
        """Whether the objects are there after the process has ended."""
        return not self.url.startswith("memory://")

    @property
    def shown_endpoint(self) -> str:
        """The setting of the endpoint and its value, without credentials."""
        if self.endpoint is None:
            return f"{self.endpoint_setting} (not set)"
        return f"{self.endpoint_setting} ({public_url(self.endpoint)})"


def public_url(url: str) -> str:
    """An address without credentials, which may be shown."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest if scheme == 'file' else rest.rpartition('@')[2]}"


def check_key(node_id: int, prefix: str = "") -> str:
    """The object that a broker writes and deletes to find out whether it may."""
    return f"{prefix}{_CHECK_KEY}-{node_id}"


async def check_owned(store: ObjectStore, cluster_id: str) -> None:
    """Return if the store answers, and belongs to this cluster or to none. Only reads. Raises ObjectStoreErrors."""
    check_owner(store, await prefix_owner(store) or cluster_id, cluster_id)


async def check_readable(store: ObjectStore, key: str) -> None:
    """Return if the store answers: looks for an object, which need not be there. Raises ObjectStoreErrors."""
    try:
        await store.get(key)
    except ObjectNotFound:
        return


async def check_writable(store: ObjectStore, key: str) -> None:
    """Return if objects can be written and deleted: writes one under `key`, and deletes it. Raises ObjectStoreErrors.

    Not for every few seconds: a bucket that keeps versions would keep all of them.
    """
    await store.put(key, [_TEXT])
    await store.delete([key])


def advise(error: ObjectStoreError, place: StorePlace) -> str:
    """The error as a sentence, with the settings that may be wrong."""
    return f"{error} {_advice(error, place)}".rstrip()


@contextmanager
def advised(place: StorePlace) -> Iterator[None]:
    """Errors that leave the block name the settings that may be wrong."""
    try:
        yield
    except ObjectStoreError as error:
        raise type(error)(advise(error, place)) from error


def _advice(error: ObjectStoreError, place: StorePlace) -> str:
    match error:
        case ForeignStore():
            return ""  # says it itself
        case _ if not place.is_bucket:
            return f"See {place.url_setting}."
        case NoSuchBucket():
            return f"See {place.url_setting} and {place.shown_endpoint}."
        case AccessRefused():
            return f"See {place.credentials_setting}, and what they may do in the bucket of {place.url_setting}."
        case ObjectStoreMisconfigured():
            return f"See {place.url_setting}, {place.shown_endpoint} and {place.credentials_setting}."
        case _:
            return f"See {place.shown_endpoint} and {place.url_setting}, and whether the store runs."
