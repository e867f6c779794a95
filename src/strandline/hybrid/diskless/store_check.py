"""How the object store of diskless topics is checked, whether or not there are such topics yet."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from strandline.clock import Clock, Ids
from strandline.config import Settings
from strandline.controlplane import StoreProofs, StoreRecords
from strandline.controlplane.store_records import DISKLESS_STORE
from strandline.diskless.storage import object_options, object_place
from strandline.health import WRITES, Health
from strandline.hybrid.store_identity import StoreIdentity, StoreUse
from strandline.hybrid.store_watch import StoreWatch
from strandline.metadata import MetadataLoader
from strandline.objects import ObjectNotFound, ObjectStore, ObjectStoreMisconfigured
from strandline.objects.address import parse_address
from strandline.objects.checking import advised, check_key, check_owned, check_writable
from strandline.objects.marker import STORE_ID_KEY
from strandline.objects.opening import open_bare
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

# The settings that name a store. Without them it is a directory of the broker's own.
PLACES: Final = frozenset({"strandline.objects.url", "inkless.storage.s3.bucket.name"})
# A check that takes longer is shown, although it may still be answered.
_SLOW: Final = 5.0
# Any of them says that a store holds objects of this cluster. One may be deleted while it is looked for.
_PROOFS: Final = 3
# What was looked for may have been deleted meanwhile. While other brokers write, each look has other newest objects.
_LOOKS: Final = 3
# A check opens the store anew, which takes longer than one request.
_SHORTEST_DEADLINE: Final = 2.0


def watch_objects(
    settings: Settings,
    cluster_id: Callable[[], str],
    identity: StoreIdentity,
    *,
    has_topics: Callable[[], bool],
    clock: Clock,
    ids: Ids,
) -> StoreWatch:
    """A watch over the store that the settings name; over a directory of the broker's own once there are topics.

    Each check opens the store anew: it shares nothing with the requests of clients.
    """
    diskless, node_id = settings.diskless, settings.cluster.node_id
    options = replace(object_options(diskless), threads=1)
    place, address = object_place(diskless), parse_address(diskless.objects_address)
    is_named = bool(settings.static.keys() & PLACES)

    async def check(kind: str) -> None:
        if place.is_bucket:  # its library is large: clients do not wait while it loads
            await asyncio.to_thread(importlib.import_module, "strandline.objects.cloud.opening")
        with advised(place):
            async with open_bare(address, options, clock=clock, ids=ids) as store:
                if place.is_lasting:  # a store in memory is a new one each time it is opened
                    await _compare(identity, store)
                await check_owned(store, cluster_id())
                if kind == WRITES:
                    await check_writable(store, check_key(node_id))

    return StoreWatch(
        Health("diskless", "the object store of diskless topics", place.url, clock, hangs_after=_SLOW),
        check,
        clock=clock,
        deadline=max(options.patience.attempt_deadline, _SHORTEST_DEADLINE),
        is_wanted=lambda: diskless.diskless_storage_system_enable and (is_named or has_topics()),
    )


def objects_identity(settings: Settings, loader: MetadataLoader, records: StoreRecords, ids: Ids) -> StoreIdentity:
    """Whether the store that the settings name is the one that the rows of the control plane refer to."""
    node_id = settings.cluster.node_id

    async def is_unused() -> bool:
        return not (await records.store_proofs(1)).oldest

    async def holds_ours(store: ObjectStore) -> bool:
        """Whether the oldest and the newest objects are there: a store that was in use by mistake has only some."""
        looked_for: StoreProofs | None = None
        for _ in range(_LOOKS):
            proofs = await records.store_proofs(_PROOFS)
            if proofs == looked_for:
                break
            looked_for = proofs
            if await is_any_there(store, proofs.oldest) and await is_any_there(store, proofs.newest):
                return True
        return False

    use = StoreUse(
        purpose=DISKLESS_STORE,
        what="the objects of diskless topics",
        setting="strandline.objects.url",
        key=STORE_ID_KEY,
        is_lasting=object_place(settings.diskless).is_lasting,
        is_unused=is_unused,
        may_move=lambda: not loader.image.brokers.keys() - {node_id},
        holds_ours=holds_ours,
        knows_copies=True,
    )
    return StoreIdentity(use, records, ids=ids)


async def is_any_there(store: ObjectStore, keys: Sequence[str]) -> bool:
    """Whether the store has any of these objects."""
    for key in keys:
        try:
            await store.get_range(key, 0, 1)
        except ObjectNotFound:
            continue
        return True
    return False


async def _compare(identity: StoreIdentity, store: ObjectStore) -> None:
    try:
        await identity.compare(store)
    except SqlError as error:  # shown as a database that is away; what was found before holds
        logger.debug("%s cannot be compared with the database: %s", store.url, error)


def check_shared(settings: Settings, brokers: Collection[int]) -> None:
    """Refuse a default object store in a cluster: each broker would have its own, which the others cannot read."""
    others = sorted(set(brokers) - {settings.cluster.node_id})
    address = settings.diskless.objects_address
    if others and (address.startswith("memory://") or not settings.static.keys() & PLACES):
        raise ObjectStoreMisconfigured(
            f"The cluster has other brokers ({', '.join(map(str, others))}), and all of them have to use one object "
            f"store, but {address} would be used by this broker alone. Give every broker the same "
            "strandline.objects.url."
        )
