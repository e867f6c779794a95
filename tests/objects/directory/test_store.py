"""Objects as files: durable, whole, inside their directory."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock, SystemIds
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.objects import (
    ObjectNotFound,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    ObjectStoreUnavailable,
    open_objects,
)
from strandline.objects.directory import DirectoryStore
from strandline.testing.clock import VirtualClock
from tests.waiting import wait_until

SIGKILLED = -9

WRITE_ONE = """
import asyncio, sys
from strandline.objects import open_objects

async def main():
    async with open_objects("file://" + sys.argv[1]) as store:
        await store.put("wal/1/key", [b"x" * 100_000] * 20)

asyncio.run(main())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


THREADS = 8


@pytest_asyncio.fixture
async def store(root: Path) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(str(root), clock=SystemClock(), ids=SystemIds(), threads=THREADS)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were flushed, as they were called at that moment."""
    paths: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record)
    return paths


def uploads(root: Path) -> list[str]:
    return os.listdir(root / ".uploads")


async def keys_of(store: DirectoryStore, prefix: str = "") -> list[str]:
    return [info.key async for info in store.list(prefix)]


async def test_a_write_flushes_the_file_before_it_has_a_name_and_then_the_directory(
    store: DirectoryStore, root: Path, synced: list[str]
) -> None:
    await store.put("key", [b"data"])
    assert len(synced) == 2
    assert Path(synced[0]).parent == root / ".uploads"
    assert synced[1] == str(root)


async def test_the_first_write_to_a_new_directory_flushes_those_above(
    store: DirectoryStore, root: Path, synced: list[str]
) -> None:
    await store.put("a/b/first", [b"data"])
    assert sorted(synced[1:]) == [str(root), str(root / "a"), str(root / "a/b")]
    synced.clear()
    await store.put("a/b/second", [b"data"])
    assert synced[1:] == [str(root / "a/b")]
    synced.clear()
    await store.put("a/c/third", [b"data"])
    assert sorted(synced[1:]) == [str(root / "a"), str(root / "a/c")]


async def test_a_directory_that_was_made_again_is_flushed_again(
    store: DirectoryStore, root: Path, synced: list[str]
) -> None:
    await store.put("a/key", [b"data"])
    await store.delete(["a/key"])
    assert not (root / "a").exists()
    synced.clear()
    await store.put("a/key", [b"data"])
    assert sorted(synced[1:]) == [str(root), str(root / "a")]


async def test_a_directory_that_another_broker_removed_is_flushed_again(
    store: DirectoryStore, root: Path, synced: list[str]
) -> None:
    await store.put("a/b/key", [b"data"])
    async with open_objects(f"file://{root}") as another:
        await another.delete(["a/b/key"])
    assert not (root / "a").exists()
    synced.clear()
    await store.put("a/b/key", [b"data"])
    assert sorted(synced[1:]) == [str(root), str(root / "a"), str(root / "a/b")]


async def test_opening_flushes_the_directories_it_makes(tmp_path: Path, synced: list[str]) -> None:
    async with open_objects(f"file://{tmp_path}/a/b/c"):
        assert set(synced) == {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a/b")}


async def test_a_delete_is_flushed_once_for_each_directory(
    store: DirectoryStore, root: Path, synced: list[str]
) -> None:
    for number in range(6):
        await store.put(f"{number % 2}/{number}", [b"data"])
    synced.clear()
    await store.delete([f"{number % 2}/{number}" for number in range(6)])
    assert sorted(synced) == [str(root / "0"), str(root / "1")]


async def test_writes_at_the_same_time_share_flushes_of_the_directory(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put("warm", [b"up"])
    gate, flushes = threading.Event(), 0
    fsync = os.fsync

    def slow(fd: int) -> None:
        nonlocal flushes
        if os.readlink(f"/proc/self/fd/{fd}") == str(root):
            flushes += 1
            gate.wait(30)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", slow)
    writing = [asyncio.create_task(store.put(f"key-{number}", [b"data"])) for number in range(THREADS)]
    await asyncio.to_thread(wait_until, lambda: store._sync.waiting(str(root)) == THREADS - 1)
    gate.set()
    await asyncio.gather(*writing)
    assert flushes == 2  # one that ran already, one for all writes meanwhile


@pytest.mark.parametrize(("place", "remains"), [("after_write", []), ("after_publish", ["wal/1/key"])])
async def test_a_crash_leaves_the_whole_object_or_nothing(root: Path, place: str, remains: list[str]) -> None:
    environment = {**os.environ, ENVIRONMENT_VARIABLE: f"objects.put.{place}"}
    command = [sys.executable, "-c", WRITE_ONE, str(root)]
    ended = await asyncio.to_thread(subprocess.run, command, env=environment, check=False)
    assert ended.returncode == SIGKILLED
    async with open_objects(f"file://{root}") as store:
        assert [info.key async for info in store.list("")] == remains
        for key in remains:
            assert bytes(await store.get(key)) == b"x" * 2_000_000
        await store.put("wal/1/key", [b"again"])
        assert bytes(await store.get("wal/1/key")) == b"again"


async def test_a_torn_upload_is_never_seen_and_removed_when_it_is_old(root: Path) -> None:
    clock = VirtualClock(SystemClock().now_ms())
    async with open_objects(f"file://{root}", clock=SystemClock()) as store:
        (root / ".uploads/torn").write_bytes(b"half an obj")
        assert [info.key async for info in store.list("")] == []
        for key in (".uploads/torn", ".uploads"):
            with pytest.raises(ObjectStoreError, match="unfinished uploads"):
                await store.get(key)
    async with open_objects(f"file://{root}", clock=clock):
        assert uploads(root) == ["torn"]  # perhaps of another broker that is writing it now
    clock.move(3601)
    async with open_objects(f"file://{root}", clock=clock):
        assert uploads(root) == []


async def test_a_torn_upload_is_also_removed_while_the_store_is_in_use(root: Path) -> None:
    clock = VirtualClock(SystemClock().now_ms())
    store = DirectoryStore(str(root), clock=clock, ids=SystemIds(), threads=1)
    await store.open()
    (root / ".uploads/torn").write_bytes(b"half an obj")
    await store.delete(["missing"])
    assert uploads(root) == ["torn"]
    clock.move(3700)
    await store.delete(["missing"])
    assert uploads(root) == []
    await store.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("call", ["writev", "fsync", "rename"])
async def test_a_write_that_fails_leaves_nothing_behind(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(ObjectStoreUnavailable, match="some/key") as raised:
            await store.put("some/key", [b"data"])
    assert os.strerror(code) in str(raised.value)
    assert store.url in str(raised.value)
    assert (await keys_of(store), uploads(root)) == ([], [])
    await store.put("some/key", [b"data"])
    assert bytes(await store.get("some/key")) == b"data"


async def test_a_flush_of_the_directory_that_fails_fails_the_write(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fail(fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}") == str(root):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(ObjectStoreUnavailable, match="key"):
            await store.put("key", [b"data"])
        with pytest.raises(ObjectStoreUnavailable, match="some/other"):
            await store.put("some/other", [b"data"])
    await store.put("some/other", [b"data"])


@pytest.mark.parametrize(("code", "works"), [(errno.EOPNOTSUPP, True), (errno.EINVAL, True), (errno.ENOSPC, False)])
async def test_a_file_system_need_not_know_how_to_allocate(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch, code: int, works: bool
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    if works:
        await store.put("key", [b"x" * 1_000_000])
        assert len(await store.get("key")) == 1_000_000
    else:
        with pytest.raises(ObjectStoreUnavailable, match="No space left"):
            await store.put("key", [b"x" * 1_000_000])
        assert (await keys_of(store), uploads(root)) == ([], [])


async def test_a_call_that_writes_only_some_of_the_bytes_is_followed_by_another(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writev: Callable[[int, list[bytes]], int] = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, views: writev(fd, [b"".join(views)[:7]]))
    await store.put("key", [b"0123", b"", b"456789", b"abc", b"d" * 20])
    assert bytes(await store.get("key")) == b"0123456789abc" + b"d" * 20


async def test_the_parts_of_a_cancelled_write_may_change_and_the_object_does_not_appear(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing, gate = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(fd: int) -> None:
        flushing.set()
        gate.wait(30)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", slow)
    writing = asyncio.create_task(store.put("key", [bytearray(b"data")]))
    await asyncio.to_thread(flushing.wait, 30)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    gate.set()
    await asyncio.to_thread(wait_until, lambda: not uploads(root))
    assert await keys_of(store) == []


async def test_a_cancelled_writer_does_not_take_the_flush_from_the_others(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    fsync = os.fsync

    def slow(fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}") == str(root):
            gate.wait(30)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", slow)
    leaving, staying = (asyncio.create_task(store.put(key, [b"data"])) for key in ("leaving", "staying"))
    await asyncio.to_thread(wait_until, lambda: (root / "leaving").exists() and (root / "staying").exists())
    leaving.cancel()
    gate.set()
    await staying
    assert await keys_of(store) == ["leaving", "staying"]


async def test_emptied_directories_go_and_the_others_stay(store: DirectoryStore, root: Path) -> None:
    for key in ("a/b/c/1", "a/b/2", "d/3"):
        await store.put(key, [b"x"])
    await store.delete(["a/b/c/1", "d/3"])
    assert sorted(os.listdir(root)) == [".uploads", "a"]
    assert os.listdir(root / "a/b") == ["2"]


async def test_writes_into_directories_that_are_being_removed_succeed(store: DirectoryStore) -> None:
    async def write(number: int) -> None:
        for turn in range(15):
            key = f"same/place/{number}-{turn}"
            await store.put(key, [b"data"])
            assert bytes(await store.get(key)) == b"data"
            await store.delete([key])

    await asyncio.gather(*map(write, range(4)))
    assert await keys_of(store) == []


async def test_a_key_cannot_be_the_directory_of_another(store: DirectoryStore) -> None:
    await store.put("a/b", [b"x"])
    for key in ("a", "a/b/c", "a/b/c/d"):
        for writing in (store.put(key, [b"y"]), store.put_new(key, [b"y"])):
            with pytest.raises(ObjectStoreError, match="no key can begin with another key") as raised:
                await writing
            assert not raised.value.retriable
        with pytest.raises(ObjectNotFound):
            await store.get(key)
        await store.delete([key])
    assert await keys_of(store) == ["a/b"]


async def test_files_that_are_no_objects_are_not_listed(store: DirectoryStore, root: Path) -> None:
    await store.put("key", [b"x"])
    (root / os.fsdecode(b"\xff")).write_bytes(b"x")
    (root / "new\nline").write_bytes(b"x")
    (root / "dangling").symlink_to(root / "nowhere")
    assert await keys_of(store) == ["key"]


async def test_two_stores_may_use_one_directory(store: DirectoryStore, root: Path) -> None:
    async with open_objects(f"file://{root}") as other:
        await other.put("a/1", [b"one"])
        await store.put("a/2", [b"two"])
        await store.delete(["a/1", "a/2"])
        await other.put("a/3", [b"three"])
        assert bytes(await store.get("a/3")) == b"three"


async def test_a_path_that_is_a_file_is_a_misconfiguration(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in ("file", "file/below"):
        with pytest.raises(ObjectStoreMisconfigured, match=str(tmp_path)):
            async with open_objects(f"file://{tmp_path}/{path}"):
                raise AssertionError
