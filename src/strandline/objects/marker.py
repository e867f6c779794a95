"""The object that says which cluster a bucket, a prefix or a directory belongs to."""

from __future__ import annotations

import json
from typing import Final

from strandline.objects.store import ForeignStore, ObjectExists, ObjectNotFound, ObjectStore

MARKER_KEY: Final = "strandline-cluster.json"
STORE_ID_KEY: Final = "strandline-store.json"
"""The object that tells a store of diskless topics from others of the same cluster."""
REMOTE_STORE_ID_KEY: Final = "strandline-remote-store.json"
"""The same for a store of segments, behind its prefix: both may be in one place, and move one by one."""


async def claim_prefix(store: ObjectStore, cluster_id: str) -> None:
    """Make sure that the store belongs to this cluster. The first cluster that asks gets it.

    Raises ForeignStore if it belongs to another one: two clusters would delete each other's objects.
    """
    owner = await prefix_owner(store)
    if owner is None:
        text = json.dumps({"cluster_id": cluster_id}) + "\n"
        try:
            await store.put_new(MARKER_KEY, [text.encode()])
            return
        except ObjectExists:  # another broker was faster; it may be of another cluster
            owner = await prefix_owner(store)
    check_owner(store, owner, cluster_id)


def check_owner(store: ObjectStore, owner: str | None, cluster_id: str) -> None:
    """Raise ForeignStore unless the owner is this cluster."""
    if owner != cluster_id:
        raise ForeignStore(
            f"{store.url} belongs to the cluster {owner}, and this is the cluster {cluster_id}. Give this cluster "
            "another bucket or prefix in strandline.objects.url; if the other cluster is gone for good, delete all its "
            f"objects there, {MARKER_KEY} as the last one."
        )


async def store_id(store: ObjectStore, key: str = STORE_ID_KEY) -> str | None:
    """The id of the store; None if it has none yet. Only reads. Raises ForeignStore if it cannot be parsed."""
    try:
        data = await store.get(key)
    except ObjectNotFound:
        return None
    try:
        return str(json.loads(bytes(data))["store_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise ForeignStore(
            f"The object {key} in {store.url} does not say which store this is. Restore it from a copy of the store; "
            "or delete it if the store holds the newest objects of this cluster, and a broker writes another."
        ) from error


async def give_store_id(store: ObjectStore, wanted: str, key: str = STORE_ID_KEY) -> str:
    """Give the store this id unless it has one; returns the id that it has. Of several brokers at once, one wins."""
    found = await store_id(store, key)
    if found is not None:
        return found
    try:
        await store.put_new(key, [_content(wanted)])
    except ObjectExists:  # another broker was faster
        return await store_id(store, key) or wanted
    return wanted


async def set_store_id(store: ObjectStore, wanted: str, key: str = STORE_ID_KEY) -> None:
    """Give the store this id, whether it has one or not."""
    await store.put(key, [_content(wanted)])


def _content(wanted: str) -> bytes:
    return (json.dumps({"store_id": wanted}) + "\n").encode()


async def prefix_owner(store: ObjectStore) -> str | None:
    """The id of the cluster that the store belongs to; None if it belongs to none yet. Only reads.

    Raises ForeignStore if the marker cannot be parsed.
    """
    try:
        data = await store.get(MARKER_KEY)
    except ObjectNotFound:
        return None
    try:
        return str(json.loads(bytes(data))["cluster_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise ForeignStore(
            f"The object {MARKER_KEY} in {store.url} does not say which cluster it belongs to. If this store is yours, "
            'write {"cluster_id": "…"} into it; otherwise name another place in strandline.objects.url.'
        ) from error
