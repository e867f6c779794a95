"""Files that are copied into objects: durable, piece by piece, around the page cache, and ended when cancelled."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.objects import (
    ObjectOptions,
    ObjectStoreUnavailable,
    Patience,
    RetryingStore,
    S3Options,
    SourceUnreadable,
    harden,
    open_objects,
)
from strandline.objects.directory import DirectoryStore
from strandline.objects.memory import MemoryStore
from strandline.objects.source_file import SourceFile
from strandline.testing.clock import VirtualClock
from strandline.testing.objects import FaultyStore
from tests.objects.http_server import Request, answer, http_server
from tests.waiting import wait_until

MIB = 1024 * 1024
PIECE = 2 * MIB
PATIENCE = Patience(attempts=3, backoff=1.0, attempt_deadline=10.0, deadline=30.0, slowest_copy=MIB)
SIGKILLED = -9

COPY_ONE = """
import asyncio, sys
from pathlib import Path
from strandline.objects import open_objects

async def main():
    async with open_objects("file://" + sys.argv[1]) as store:
        await store.put_file("some/key", Path(sys.argv[2]))

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of five and a half pieces."""
    path = tmp_path / "file"
    path.write_bytes((bytes(range(251)) * (11 * MIB // 251 + 1))[: 11 * MIB + 5])
    return path


def content(path: Path) -> bytes:
    return path.read_bytes()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest_asyncio.fixture
async def directory(root: Path) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(str(root), clock=SystemClock(), ids=SystemIds(), threads=2)
    await store.open()
    yield store
    await store.close()


async def test_a_copy_is_flushed_before_it_has_a_name_and_then_its_directory(
    directory: DirectoryStore, root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record)
    await directory.put_file("key", path)
    assert [Path(synced[0]).parent, *synced[1:]] == [root / ".uploads", str(root)]


@pytest.mark.parametrize(("place", "is_there"), [("after_write", False), ("after_publish", True)])
async def test_a_crash_leaves_the_whole_copy_or_nothing(root: Path, path: Path, place: str, *, is_there: bool) -> None:
    environment = {**os.environ, ENVIRONMENT_VARIABLE: f"objects.put.{place}"}
    command = [sys.executable, "-c", COPY_ONE, str(root), str(path)]
    ended = await asyncio.to_thread(subprocess.run, command, env=environment, check=False)
    assert ended.returncode == SIGKILLED
    async with open_objects(f"file://{root}") as store:
        assert [info.key async for info in store.list("")] == ["some/key"] * is_there
        if is_there:
            assert bytes(await store.get("some/key")) == content(path)


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "posix_fallocate"])
async def test_a_copy_that_fails_leaves_nothing_behind(
    directory: DirectoryStore, root: Path, path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises(ObjectStoreUnavailable, match=r"write object key in .*No space left"):
            await directory.put_file("key", path)
    assert os.listdir(root / ".uploads") == []
    await directory.put_file("key", path)
    assert bytes(await directory.get("key")) == content(path)


async def test_a_cancelled_copy_ends_at_its_next_piece(
    directory: DirectoryStore, root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, pieces = threading.Event(), threading.Event(), 0
    read_into = SourceFile.read_into

    def slow(self: SourceFile, piece: memoryview, position: int) -> None:
        nonlocal pieces
        pieces += 1
        reached.set()
        go_on.wait(30)
        read_into(self, piece, position)

    monkeypatch.setattr(SourceFile, "read_into", slow)
    copying = asyncio.create_task(directory.put_file("key", path))
    await asyncio.to_thread(reached.wait, 30)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    go_on.set()
    await asyncio.to_thread(wait_until, lambda: not os.listdir(root / ".uploads"))
    assert pieces == 1
    assert [info.key async for info in directory.list("")] == []


async def test_small_writes_and_deletes_do_not_wait_for_large_copies(
    directory: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, index = tmp_path / "large", tmp_path / "index"
    large.write_bytes(bytes(16 * MIB))
    index.write_bytes(bytes(5 * MIB))
    go_on = threading.Event()
    read_into = SourceFile.read_into

    def slow(self: SourceFile, piece: memoryview, position: int) -> None:
        if self.size == 16 * MIB:
            go_on.wait(30)
        read_into(self, piece, position)

    monkeypatch.setattr(SourceFile, "read_into", slow)
    copying = [asyncio.create_task(directory.put_file(f"large-{number}", large)) for number in range(10)]
    await directory.put("small", [b"data"])
    await directory.put_file("index", index)
    await directory.delete(["small"])
    assert [info.key async for info in directory.list("")] == ["index"]
    go_on.set()
    await asyncio.gather(*copying)


async def test_a_file_that_becomes_shorter_is_no_object(
    directory: DirectoryStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_into = SourceFile.read_into

    def cut(self: SourceFile, piece: memoryview, position: int) -> None:
        os.truncate(path, 3 * MIB)
        read_into(self, piece, position)

    monkeypatch.setattr(SourceFile, "read_into", cut)
    with pytest.raises(SourceUnreadable, match="became shorter"):
        await directory.put_file("key", path)
    assert [info.key async for info in directory.list("")] == []


async def test_a_copy_is_never_in_memory_as_a_whole(directory: DirectoryStore, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        for number in range(64):
            file.write(bytes([number]) * MIB)
    await directory.put_file("warm", path)
    tracemalloc.start()
    try:
        await directory.put_file("key", path)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_what_comes_from_the_disk_does_not_stay_in_the_page_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[tuple[int, int]] = []
    cached: set[int] = {PIECE}
    preadv = os.preadv

    def read(fd: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if flags and position not in cached:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return preadv(fd, buffers, position)

    monkeypatch.setattr(os, "preadv", read)

    def advise(fd: int, start: int, size: int, advice: int) -> None:
        if advice == os.POSIX_FADV_DONTNEED:
            dropped.append((start, size))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    with SourceFile(path) as source:
        read_back = b"".join(source.read(at, min(PIECE, source.size - at)) for at in range(0, source.size, PIECE))
    assert read_back == content(path)
    # Pages that were cached before stay cached: clients read them.
    assert dropped == [(0, PIECE), *((at, PIECE) for at in range(2 * PIECE, 10 * MIB, PIECE)), (10 * MIB, MIB + 5)]


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_that_cannot_tell_what_is_cached_is_read_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    preadv = os.preadv

    def read(fd: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if flags:
            raise OSError(code, os.strerror(code))
        return preadv(fd, [buffers[0][:70_000]], position)

    monkeypatch.setattr(os, "preadv", read)
    with SourceFile(path) as source:
        assert source.read(3, 5 * MIB) == content(path)[3 : 3 + 5 * MIB]


def hardened(clock: VirtualClock) -> tuple[FaultyStore, RetryingStore]:
    faulty = FaultyStore(MemoryStore(clock), clock)
    return faulty, harden(faulty, ObjectOptions(patience=PATIENCE), clock=clock, chance=SystemChance())


async def test_the_deadline_of_a_copy_grows_with_the_file(path: Path) -> None:
    clock = VirtualClock()
    faulty, store = hardened(clock)
    faulty.delay("put_file", 20.5)  # 10 seconds for any call, 11 for the bytes
    copying = asyncio.create_task(store.put_file("key", path))
    await clock.advance(20.6)
    await copying
    assert faulty.count("put_file") == 1
    assert bytes(await store.get("key")) == content(path)
    status = store.status().operations["put_file"]
    assert (status.calls, status.errors, status.bytes) == (1, 0, 11 * MIB + 5)


async def test_a_copy_that_never_returns_is_given_up_and_shows(path: Path) -> None:
    clock = VirtualClock()
    faulty, store = hardened(clock)
    faulty.block("put_file")
    copying = asyncio.create_task(store.put_file("key", path))
    await clock.advance(20)
    assert store.status().operations["put_file"].oldest_pending_seconds == 20
    await clock.advance(30)
    with pytest.raises(ObjectStoreUnavailable, match="Writing object key to memory:// failed"):
        await copying
    assert store.status().operations["put_file"].pending == 0


async def test_a_copy_whose_answer_is_lost_is_tried_again(path: Path) -> None:
    clock = VirtualClock()
    faulty, store = hardened(clock)
    faulty.lose_answer("put_file")
    copying = asyncio.create_task(store.put_file("key", path))
    await clock.advance(5)
    await copying
    assert bytes(await store.get("key")) == content(path)


class Multipart:
    """A bucket that takes one object in parts, and refuses some of them at first."""

    def __init__(self, *refused: str) -> None:
        self.parts: dict[str, bytes] = {}
        self.refused = [*refused]
        self.uploads = 0

    def serve(self, request: Request) -> bytes:
        if request.method == "POST" and "uploads" in request.path:
            self.uploads += 1
            body = b"<InitiateMultipartUploadResult><UploadId>7</UploadId></InitiateMultipartUploadResult>"
            return answer("200 OK", body)
        if request.method == "POST":
            body = b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
            return answer("200 OK", body)
        number = parse_qs(urlsplit(request.path).query)["partNumber"][0]
        if number in self.refused:
            self.refused.remove(number)
            return answer("503 Slow Down")
        self.parts[number] = request.body
        return answer("200 OK", ETag='"part"')


@pytest.mark.parametrize(("refused", "uploads"), [((), 1), (("1",), 2), (("2", "2"), 3)])
async def test_a_large_file_goes_to_a_bucket_in_parts_and_again_if_one_fails(
    path: Path, refused: tuple[str, ...], uploads: int
) -> None:
    bucket = Multipart(*refused)
    async with http_server(bucket.serve) as server:
        s3 = S3Options(endpoint_url=server.endpoint, region="r", access_key_id="i", secret_access_key="s")
        async with open_objects("s3://bucket/prefix", ObjectOptions(s3=s3)) as store:
            await store.put_file("key", path)
    data = content(path)
    assert bucket.parts == {"1": data[: 8 * MIB], "2": data[8 * MIB :]}
    assert bucket.uploads == uploads
