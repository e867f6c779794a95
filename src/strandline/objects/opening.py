"""Opens the store at an address, with retries, deadlines and counters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.clock import Chance, Clock, Ids, SystemChance, SystemClock, SystemIds
from strandline.health import Health
from strandline.objects.address import ObjectAddress, parse_address
from strandline.objects.counting import CountingStore, Traffic
from strandline.objects.directory import DirectoryStore
from strandline.objects.hedging import HedgingStore
from strandline.objects.memory import MemoryStore
from strandline.objects.options import ObjectOptions
from strandline.objects.retrying import RetryingStore
from strandline.objects.store import ObjectStore


@asynccontextmanager
async def open_objects(
    url: str,
    options: ObjectOptions | None = None,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    chance: Chance | None = None,
    health: Health | None = None,
) -> AsyncIterator[RetryingStore]:
    """The store at `url`, closed at the end of the block.

    file:///directory, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, or memory:// for a new, empty one.
    Buckets are not touched before the first call. Raises ObjectStoreMisconfigured.
    """
    options = options or ObjectOptions()
    clock = clock or SystemClock()
    async with open_bare(parse_address(url), options, clock=clock, ids=ids or SystemIds()) as store:
        yield harden(store, options, clock=clock, chance=chance or SystemChance(), health=health)


def harden(
    store: ObjectStore, options: ObjectOptions, *, clock: Clock, chance: Chance, health: Health | None = None
) -> RetryingStore:
    """The store with retries, deadlines and, if the options ask for them, hedged reads.

    Every attempt is counted, and its outcome noted in `health`.
    """
    traffic = Traffic(clock, health or Health("objects", "the object store", store.url, clock))
    store = CountingStore(store, traffic)
    if options.hedge_after > 0:
        store = HedgingStore(store, after=options.hedge_after, clock=clock, traffic=traffic)
    return RetryingStore(store, options.patience, clock=clock, chance=chance, traffic=traffic)


@asynccontextmanager
async def open_bare(
    address: ObjectAddress, options: ObjectOptions, *, clock: Clock, ids: Ids
) -> AsyncIterator[ObjectStore]:
    """The store itself: every call is one attempt."""
    if address.scheme == "memory":
        yield MemoryStore(clock)
        return
    if address.scheme != "file":
        # Imported here: a broker on a directory starts faster without the library.
        from strandline.objects.cloud.opening import make_cloud_store

        yield make_cloud_store(address, options)
        return
    directory = DirectoryStore(address.path, clock=clock, ids=ids, threads=options.threads, witness=options.witness)
    try:
        await directory.open()
        yield directory
    finally:
        await directory.close()
