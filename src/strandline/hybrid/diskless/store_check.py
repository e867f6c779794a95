"""How the object store of diskless topics is checked, whether or not there are such topics yet."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from strandline.clock import Clock, Ids
from strandline.config import Settings
from strandline.diskless.storage import object_options, object_place
from strandline.health import WRITES, Health
from strandline.hybrid.store_watch import StoreWatch
from strandline.objects import ObjectStoreMisconfigured
from strandline.objects.address import parse_address
from strandline.objects.checking import advised, check_key, check_owned, check_writable
from strandline.objects.opening import open_bare

# The settings that name a store. Without them it is a directory of the broker's own.
PLACES: Final = frozenset({"strandline.objects.url", "inkless.storage.s3.bucket.name"})
# A check that takes longer is shown, although it may still be answered.
_SLOW: Final = 5.0
# A check opens the store anew, which takes longer than one request.
_SHORTEST_DEADLINE: Final = 2.0


def watch_objects(
    settings: Settings, cluster_id: Callable[[], str], *, has_topics: Callable[[], bool], clock: Clock, ids: Ids
) -> StoreWatch:
    """A watch over the store that the settings name; over a directory of the broker's own once there are topics.

    Each check opens the store anew: it shares nothing with the requests of clients.
    """
    diskless, node_id = settings.diskless, settings.cluster.node_id
    options = replace(object_options(diskless), threads=1)
    place = object_place(diskless)
    is_named = bool(settings.static.keys() & PLACES)

    async def check(kind: str) -> None:
        if place.is_bucket:  # its library is large: clients do not wait while it loads
            await asyncio.to_thread(importlib.import_module, "strandline.objects.cloud.opening")
        with advised(place):
            async with open_bare(parse_address(diskless.objects_address), options, clock=clock, ids=ids) as store:
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
