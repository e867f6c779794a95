"""Opening the stores of a cluster where a task runs: only those that the brokers use."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from strandline.errors import InvalidConfig
from strandline.objects import claim_prefix
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from strandline.objects.store import ForeignStore
from strandline.pipeline.stores import StoreSettings, open_stores


def settings(root: Path, **changed: str) -> dict[str, str]:
    (root / "objects").mkdir(exist_ok=True)
    (root / "remote").mkdir(exist_ok=True)
    found = {"strandline.objects.url": f"file://{root}/objects", "rsm.config.url": f"file://{root}/remote"}
    return found | {name.replace("_", "."): value for name, value in changed.items()}


async def test_settings_travel_to_another_process_and_do_not_show_passwords(tmp_path: Path) -> None:
    made = StoreSettings(settings(tmp_path) | {"inkless.storage.aws.secret.access.key": "hunter2"}, "a-cluster")
    assert "hunter2" not in repr(made)
    arrived = pickle.loads(pickle.dumps(made))
    assert arrived == made


async def test_both_stores_are_those_of_the_brokers(tmp_path: Path) -> None:
    async with open_stores(StoreSettings(settings(tmp_path))) as stores:
        assert stores.objects.url == f"file://{tmp_path}/objects"
        assert stores.remote.url == f"file://{tmp_path}/remote"
        await claim_prefix(stores.objects, "a-cluster")
    (tmp_path / "remote" / REMOTE_STORE_ID_KEY).write_text('{"store_id": "of-the-brokers"}')
    async with open_stores(StoreSettings(settings(tmp_path), "a-cluster")):
        pass
    with pytest.raises(ForeignStore, match="belongs to the cluster a-cluster, and this is the cluster another"):
        async with open_stores(StoreSettings(settings(tmp_path), "another")):
            pass


async def test_an_empty_directory_is_not_the_storage_of_the_brokers(tmp_path: Path) -> None:
    """A disk that is not mounted on a worker: what is uploaded there would be in vain."""
    async with open_stores(StoreSettings(settings(tmp_path))) as stores:
        await claim_prefix(stores.objects, "a-cluster")
    with pytest.raises(InvalidConfig, match=f"file://{tmp_path}/remote has no object {REMOTE_STORE_ID_KEY}"):
        async with open_stores(StoreSettings(settings(tmp_path), "a-cluster")):
            pass


@pytest.mark.parametrize("name", ["strandline.objects.url", "rsm.config.url"])
async def test_a_directory_that_is_not_here_is_not_created(tmp_path: Path, name: str) -> None:
    """A worker on another machine would write segments where no broker finds them."""
    with pytest.raises(InvalidConfig, match=rf"{name}=.* is not a directory of this machine"):
        async with open_stores(StoreSettings(settings(tmp_path) | {name: f"file://{tmp_path}/elsewhere"})):
            pass
    assert not (tmp_path / "elsewhere").exists()


async def test_the_memory_of_a_broker_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="in the memory of one process"):
        async with open_stores(StoreSettings(settings(tmp_path, strandline_objects_url="memory://"))):
            pass


async def test_a_setting_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"strandline\.objects\.ulr"):
        async with open_stores(StoreSettings(settings(tmp_path, strandline_objects_ulr="x"))):
            pass


async def test_a_storage_of_another_class_is_found_where_the_brokers_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "a_plugin_of_somebody.py").write_text(
        "from strandline.remote.object_storage import ObjectRemoteStorage\n"
        "class Archive(ObjectRemoteStorage):\n"
        "    @classmethod\n"
        "    async def open(cls, config, context):\n"
        "        return await super().open({'url': config['vault']}, context)\n"
    )
    made = settings(tmp_path) | {
        "rsm.config.vault": f"file://{tmp_path}/vault",
        "remote.log.storage.manager.class.name": "a_plugin_of_somebody.Archive",
        "remote.log.storage.manager.class.path": str(tmp_path),
    }
    del made["rsm.config.url"]
    async with open_stores(StoreSettings(made)) as stores:
        assert stores.remote.url == f"file://{tmp_path}/vault"
