"""`strandline stores`: an operator who has moved the objects says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from strandline.objects.marker import REMOTE_STORE_ID_KEY, STORE_ID_KEY
from tests.admin.commands.conftest import Command
from tests.broker import running_broker
from tests.clients.tiering import read as read_tiered
from tests.clients.tiering import values
from tests.hybrid.test_starting import create, write
from tests.hybrid.test_wrong_remote_store import COUNT, tiered_broker
from tests.hybrid.test_wrong_remote_store import place as remote_place
from tests.hybrid.test_wrong_store import place, read, refused, restart


def settings(data: Path, **values: str) -> list[str]:
    found = [f"{name.replace('_', '.')}={value}" for name, value in values.items()]
    return ["--data-dir", str(data), *(word for one in found for word in ("--set", one))]


def test_a_store_that_was_moved_is_accepted_and_the_old_one_is_not_any_more(tmp_path: Path, command: Command) -> None:
    data, old, new = tmp_path / "data", tmp_path / "old", tmp_path / "new"
    there = settings(data, strandline_objects_url=f"file://{new}")
    with running_broker(data, place(old)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        (recorded,) = command("stores", "list", *there, "--json").json
        assert (recorded["purpose"], recorded["url"]) == ("diskless", f"file://{old}")
        new.mkdir()
        in_use = command("stores", "accept", "diskless", *there)
        assert in_use.status == 1
        assert "Stop the broker first" in in_use.err
        broker.stop()
        empty = command("stores", "accept", "diskless", *there)
        assert empty.status == 1
        assert f"file://{new} does not hold the objects of diskless topics" in empty.err
        assert str(old) in empty.err
        assert "--force" in empty.err
        shutil.copytree(old, new, dirs_exist_ok=True)
        accepted = command("stores", "accept", "diskless", *there)
        assert accepted.status == 0, accepted.err
        new_id = json.loads((new / STORE_ID_KEY).read_text())["store_id"]
        assert new_id in accepted.out
        assert new_id != recorded["id"]
        assert f"file://{new}" in command("stores", "list", *there).out
        assert new_id in refused(broker, place(old))
        restart(broker, place(new))
        assert write(broker, "t") is None
        assert read(broker, "t", 2) == [b"x", b"x"]


def test_a_store_without_the_objects_is_accepted_by_force(tmp_path: Path, command: Command) -> None:
    data, old, new = tmp_path / "data", tmp_path / "old", tmp_path / "new"
    with running_broker(data, place(old)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        broker.stop()
        new.mkdir()
        there = settings(data, strandline_objects_url=f"file://{new}")
        assert command("stores", "accept", "diskless", "--force", *there).status == 0
        restart(broker, place(new))
        assert write(broker, "t") is None


def test_remote_storage_that_was_moved_is_accepted(tmp_path: Path, command: Command) -> None:
    data, new = tmp_path / "data", tmp_path / "new"
    there = settings(data, rsm_config_url=f"file://{new}")
    with tiered_broker(data) as broker:
        broker.stop()
        new.mkdir()
        assert command("stores", "accept", "remote", *there).status == 1
        shutil.copytree(data / "remote", new, dirs_exist_ok=True)
        with_plugin = [*there, "--set", "remote.log.metadata.manager.class.name=some.Plugin"]
        assert command("stores", "accept", "remote", *with_plugin).status == 0, "it need not be read"
        assert command("stores", "accept", "remote", *there).status == 0
        assert (new / REMOTE_STORE_ID_KEY).read_bytes() != (data / "remote" / REMOTE_STORE_ID_KEY).read_bytes()
        assert f"file://{new}" in refused(broker, remote_place(data / "remote"))
        restart(broker, remote_place(new))
        assert values(read_tiered(broker, "t", COUNT)) == list(range(COUNT))


def test_there_is_nothing_recorded_before_there_is_a_store(tmp_path: Path, command: Command) -> None:
    with running_broker(tmp_path / "data"):
        listed = command("stores", "list", "--data-dir", str(tmp_path / "data"))
    assert listed.status == 0, listed.err
    assert listed.out.startswith("No store is recorded")
