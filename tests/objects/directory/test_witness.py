"""Another directory that takes the place of the one that was opened is noticed by the first write, not by a check."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock, SystemIds
from strandline.objects import ObjectNotFound
from strandline.objects.directory import DirectoryStore
from strandline.objects.marker import STORE_ID_KEY, give_store_id
from strandline.objects.store import ObjectStoreUnavailable


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest_asyncio.fixture
async def store(root: Path) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(str(root), clock=SystemClock(), ids=SystemIds(), threads=2)
    await store.open()
    yield store
    await store.close()


def replace_with_empty(root: Path) -> Path:
    aside = root.with_name("aside")
    root.rename(aside)
    (root / ".uploads").mkdir(parents=True)
    return aside


async def test_nothing_is_written_deleted_or_missing_in_another_directory(store: DirectoryStore, root: Path) -> None:
    await give_store_id(store, "s")
    await store.put("a", [b"1"])
    aside = replace_with_empty(root)
    for call in (store.put("b", [b"2"]), store.put_new("b", [b"2"]), store.get("a"), store.delete(["a"])):
        with pytest.raises(ObjectStoreUnavailable, match=rf"{root} is not the directory that was opened.*mounted"):
            await call
    assert os.listdir(root) == [".uploads"]
    assert not os.listdir(root / ".uploads")
    shutil.rmtree(root)
    for call in (store.put("b", [b"2"]), store.get("a")):
        with pytest.raises(ObjectStoreUnavailable):
            await call
    aside.rename(root)
    await store.put("b", [b"2"])
    assert await store.get("a") == b"1"
    with pytest.raises(ObjectNotFound):
        await store.get("c")


async def test_a_directory_of_another_store_is_refused(store: DirectoryStore, root: Path) -> None:
    await give_store_id(store, "s")
    await store.put("a", [b"1"])
    replace_with_empty(root)
    (root / STORE_ID_KEY).write_bytes(b'{"store_id": "t"}\n')
    with pytest.raises(ObjectStoreUnavailable):
        await store.put("b", [b"2"])


async def test_a_disk_that_is_mounted_anew_or_an_id_that_is_written_again_is_accepted(
    store: DirectoryStore, root: Path
) -> None:
    await give_store_id(store, "s")
    await store.put("a", [b"1"])
    aside = replace_with_empty(root)
    shutil.rmtree(root)
    shutil.copytree(aside, root)
    await store.put("b", [b"2"])
    (root / STORE_ID_KEY).unlink()
    with pytest.raises(ObjectStoreUnavailable):
        await store.put("c", [b"3"])
    (root / STORE_ID_KEY).write_bytes((aside / STORE_ID_KEY).read_bytes())
    await store.put("c", [b"3"])


async def test_a_directory_without_an_id_is_used_as_it_is(store: DirectoryStore, root: Path) -> None:
    await store.put("a", [b"1"])
    replace_with_empty(root)
    await store.put("b", [b"2"])
    with pytest.raises(ObjectNotFound):
        await store.get("a")
