"""The promises of `ObjectStore`, on every kind of store that can run here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemChance, SystemClock
from strandline.objects import (
    ObjectExists,
    ObjectNotFound,
    ObjectOptions,
    ObjectStore,
    ObjectStoreError,
    SourceUnreadable,
    harden,
    open_objects,
)
from strandline.objects.memory import MemoryStore
from strandline.objects.store import ObjectRange
from strandline.testing.objects import FaultyStore
from tests.s3 import start_s3

WEIRD_KEYS = [
    "a b",
    "plus+and&=#?percent%20",
    "ünïcödé/日本語",
    "quotes'and\"more",
    ".hidden/.file",
    "back\\slash",
    "tilde~*[]{}^|`<>",
    "...",
    "x/" * 100 + "deep",
    "n" * 255,
]
NOT_KEYS = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "../a",
    "./a",
    "a\0b",
    "a\nb",
    "n" * 256,
    "\udcff",
    "a/" * 500,
]


@pytest_asyncio.fixture(params=["file", "memory", "faulty", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    """An empty store."""
    url, options = "memory://", ObjectOptions(hedge_after=5.0)
    if request.param == "faulty":
        clock = SystemClock()
        yield harden(FaultyStore(MemoryStore(clock), clock), options, clock=clock, chance=SystemChance())
        return
    if request.param == "file":
        url = f"file://{tmp_path}/some/objects"
    if request.param == "s3":
        server = start_s3()
        url, options = f"s3://{server.new_bucket()}/some/prefix", server.object_options
    async with open_objects(url, options) as opened:
        assert opened.url == url
        yield opened


async def keys_of(store: ObjectStore, prefix: str = "", after: str = "") -> list[str]:
    return [info.key async for info in store.list(prefix, after=after)]


async def test_an_object_is_its_parts_one_after_the_other(store: ObjectStore) -> None:
    await store.put("wal/1", [b"ab", b"", bytearray(b"cd"), memoryview(b"xefx")[1:3]])
    assert bytes(await store.get("wal/1")) == b"abcdef"


async def test_an_object_may_have_thousands_of_parts(store: ObjectStore) -> None:
    parts = [number.to_bytes(4, "big") * (number % 7) for number in range(5000)]
    await store.put("many", parts)
    assert bytes(await store.get("many")) == b"".join(parts)


async def test_an_object_may_have_several_megabytes(store: ObjectStore) -> None:
    parts = [bytearray([number]) * 700_001 for number in range(9)]
    await store.put("big", parts)
    assert bytes(await store.get("big")) == b"".join(parts)
    assert bytes(await store.get_range("big", 700_000, 2)) == b"\x00\x01"


@pytest.mark.parametrize("parts", [[], [b""], [b"", bytearray()]], ids=["no part", "one part", "two parts"])
async def test_an_object_may_be_empty(store: ObjectStore, parts: list[bytes]) -> None:
    await store.put("empty", parts)
    assert bytes(await store.get("empty")) == b""
    assert bytes(await store.get_range("empty", 0, 10)) == b""
    assert [info.size async for info in store.list("")] == [0]


async def test_each_range_of_a_list_has_its_own_answer(store: ObjectStore) -> None:
    await store.put("a", [b"abcdef"])
    await store.put("dir/b", [b"123"])
    wanted = [("a", 1, 2), ("missing", 0, 5), ("dir/b", 0, 3), ("a", 4, 10), ("a", 1, 2), ("../a", 0, 1)]
    answers = await store.get_ranges([ObjectRange(*one) for one in wanted])
    found = [type(one) if isinstance(one, ObjectStoreError) else bytes(one) for one in answers]
    assert found == [b"bc", ObjectNotFound, b"123", b"ef", b"bc", ObjectStoreError]


async def test_a_list_of_ranges_may_be_longer_than_what_is_read_at_once(store: ObjectStore) -> None:
    await store.put("numbers", [bytes(range(200))])
    assert store.ranges_at_once >= 1
    answers = await store.get_ranges([ObjectRange("numbers", number, 1) for number in range(200)])
    assert [bytes(one) for one in answers if not isinstance(one, ObjectStoreError)] == [bytes([n]) for n in range(200)]
    assert await store.get_ranges([]) == []


async def test_writing_again_replaces_the_object(store: ObjectStore) -> None:
    await store.put("key", [b"a longer first version"])
    await store.put("key", [b"second"])
    assert bytes(await store.get("key")) == b"second"
    assert await keys_of(store) == ["key"]


async def test_put_new_refuses_what_exists_and_leaves_it_alone(store: ObjectStore) -> None:
    await store.put_new("key", [b"first"])
    with pytest.raises(ObjectExists, match=r"key\b.*") as raised:
        await store.put_new("key", [b"second"])
    assert store.url in str(raised.value)
    assert bytes(await store.get("key")) == b"first"


SIZES = [0, 1, 4096, 300_000, 2 * 1024 * 1024, 8 * 1024 * 1024, 8 * 1024 * 1024 + 1, 20_000_003]


@pytest.mark.parametrize("size", SIZES)
async def test_a_file_becomes_an_object(store: ObjectStore, tmp_path: Path, size: int) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    path = tmp_path / "file"
    path.write_bytes(data)
    await store.put("some/key", [b"what was there before"])
    await store.put_file("some/key", path)
    assert bytes(await store.get("some/key")) == data
    assert path.read_bytes() == data
    assert [(info.key, info.size) async for info in store.list("")] == [("some/key", size)]


async def test_a_file_that_cannot_be_read_becomes_nothing(store: ObjectStore, tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "missing", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(SourceUnreadable, match=reason) as raised:
            await store.put_file("key", path)
        assert str(path) in str(raised.value)
    assert await keys_of(store) == []


async def test_a_cancelled_copy_leaves_the_object_whole_or_absent(store: ObjectStore, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = b"0123456789abcdef" * (1024 * 1024)
    path.write_bytes(data)
    for turns in range(0, 30, 3):
        copying = asyncio.create_task(store.put_file(f"new-{turns}", path))
        for _ in range(turns):
            await asyncio.sleep(0)  # noqa: TID251 (a turn of the loop, no time)
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)
    for key in await keys_of(store):
        assert bytes(await store.get(key)) == data


async def test_many_files_may_be_copied_at_the_same_time(store: ObjectStore, tmp_path: Path) -> None:
    paths = [tmp_path / f"file-{number}" for number in range(12)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * (number * 100_000 + 7))
    await asyncio.gather(*(store.put_file(path.name, path) for path in paths))
    for path in paths:
        assert bytes(await store.get(path.name)) == path.read_bytes()


async def test_of_eight_writers_of_a_new_object_one_succeeds(store: ObjectStore) -> None:
    async def write(number: int) -> int | None:
        try:
            await store.put_new("race/key", [b"%d" % number] * 1000)
        except ObjectExists:
            return None
        return number

    winners = [number for number in await asyncio.gather(*map(write, range(8))) if number is not None]
    assert len(winners) == 1
    assert bytes(await store.get("race/key")) == b"%d" % winners[0] * 1000
    assert await keys_of(store) == ["race/key"]


async def test_of_eight_writers_of_one_object_one_is_read_whole(store: ObjectStore) -> None:
    versions = [bytes([number]) * 10_000 for number in range(8)]
    await asyncio.gather(*(store.put("key", [version]) for version in versions))
    assert bytes(await store.get("key")) in versions


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 10, b"0123456789"), (3, 4, b"3456"), (9, 1, b"9"), (8, 5, b"89"), (10, 1, b""), (99, 5, b""), (4, 0, b"")],
)
async def test_a_range_is_shorter_only_at_the_end(store: ObjectStore, start: int, length: int, expected: bytes) -> None:
    await store.put("key", [b"0123456789"])
    assert bytes(await store.get_range("key", start, length)) == expected


async def test_what_is_not_there_cannot_be_read(store: ObjectStore) -> None:
    await store.put("some/key", [b"x"])
    for key in ("missing", "some", "some/key/below", "some/ke"):
        for reading in (store.get(key), store.get_range(key, 0, 5), store.get_range(key, 0, 0)):
            with pytest.raises(ObjectNotFound, match=key) as raised:
                await reading
            assert store.url in str(raised.value)


async def test_ranges_must_not_be_negative(store: ObjectStore) -> None:
    await store.put("key", [b"x"])
    for start, length in ((-1, 1), (0, -1)):
        with pytest.raises(ObjectStoreError, match="negative"):
            await store.get_range("key", start, length)


async def test_a_listing_is_sorted_and_tells_sizes_and_times(store: ObjectStore) -> None:
    await store.put("b", [b"12"])
    await store.put("a", [b"1"])
    infos = [info async for info in store.list("")]
    assert [(info.key, info.size) for info in infos] == [("a", 1), ("b", 2)]
    assert all(1_500_000_000_000 < info.modified_ms < 5_000_000_000_000 for info in infos)


async def test_a_listing_takes_any_beginning_of_keys(store: ObjectStore) -> None:
    keys = sorted(["a", "a-b", "a/b", "a/b-c", "a/b/c", "a/bc", "a0", "ab/c", "b/a"], key=str)
    for key in [key for key in keys if key not in ("a", "a/b")]:  # no key may be the directory of another
        await store.put(key, [b"x"])
    stored = [key for key in keys if key not in ("a", "a/b")]
    for prefix in ("", "a", "a/", "a/b", "a/b/", "a-", "ab/c", "b/", "c", "a/b/c/", "0", "zz/top"):
        expected = [key for key in stored if key.startswith(prefix)]
        assert await keys_of(store, prefix) == expected, prefix
        for after in ("a", "a/b", "a/b/c", "a/b/zz", "ab", "zz"):
            assert await keys_of(store, prefix, after) == [key for key in expected if key > after], (prefix, after)


async def test_a_listing_has_more_than_a_page(store: ObjectStore) -> None:
    keys = [
        f"wal/{number % 7}/{number:05}" for number in range(2100 if store.url.startswith(("file", "memory")) else 1100)
    ]
    for first in range(0, len(keys), 50):
        await asyncio.gather(*(store.put(key, [b"x"]) for key in keys[first : first + 50]))
    assert await keys_of(store, "wal/") == sorted(keys)
    assert await keys_of(store, "wal/3/", after="wal/3/00500") == sorted(
        key for key in keys if key.startswith("wal/3/") and key > "wal/3/00500"
    )
    await store.delete(keys)
    assert await keys_of(store) == []


async def test_a_listing_can_be_left_early(store: ObjectStore) -> None:
    for key in ("a", "b", "c"):
        await store.put(key, [b"x"])
    async with aclosing(store.list("")) as infos:
        assert (await anext(infos)).key == "a"
    assert await keys_of(store) == ["a", "b", "c"]


async def test_deleting_can_be_repeated(store: ObjectStore) -> None:
    for key in ("x/1", "x/2", "y"):
        await store.put(key, [b"data"])
    await store.delete(["x/1", "missing", "y", "x", "y/below"])
    await store.delete(["x/1", "missing", "y"])
    await store.delete([])
    assert await keys_of(store) == ["x/2"]
    with pytest.raises(ObjectNotFound):
        await store.get("y")


async def test_a_deleted_object_can_be_written_again(store: ObjectStore) -> None:
    await store.put("some/deep/key", [b"first"])
    await store.delete(["some/deep/key"])
    await store.put_new("some/deep/key", [b"second"])
    assert bytes(await store.get("some/deep/key")) == b"second"


@pytest.mark.parametrize("key", WEIRD_KEYS, ids=range(len(WEIRD_KEYS)))
async def test_keys_may_be_weird(store: ObjectStore, key: str) -> None:
    await store.put(key, [b"data"])
    assert bytes(await store.get(key)) == b"data"
    assert bytes(await store.get_range(key, 1, 2)) == b"at"
    assert await keys_of(store) == [key]
    assert await keys_of(store, key) == [key]
    with pytest.raises(ObjectExists):
        await store.put_new(key, [b"other"])
    await store.delete([key])
    assert await keys_of(store) == []


@pytest.mark.parametrize("key", NOT_KEYS, ids=range(len(NOT_KEYS)))
async def test_what_some_store_cannot_hold_is_no_key(store: ObjectStore, key: str) -> None:
    for call in (
        store.put(key, [b"x"]),
        store.put_new(key, [b"x"]),
        store.put_file(key, Path(__file__)),
        store.get(key),
        store.get_range(key, 0, 1),
    ):
        with pytest.raises(ObjectStoreError, match="cannot be the key of an object"):
            await call
    with pytest.raises(ObjectStoreError, match="cannot be the key of an object"):
        await store.delete([key])
    assert await keys_of(store) == []


async def test_a_cancelled_write_leaves_the_object_whole_or_absent(store: ObjectStore) -> None:
    before, after = b"a" * 300_000, b"b" * 300_000
    await store.put("old", [before])
    for turns in range(12):
        writing = [asyncio.create_task(store.put(key, [after])) for key in ("old", f"new-{turns}")]
        for _ in range(turns):
            await asyncio.sleep(0)  # noqa: TID251 (a turn of the loop, no time)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
        assert bytes(await store.get("old")) in (before, after)
    for key in await keys_of(store, "new-"):
        assert bytes(await store.get(key)) == after


async def test_many_calls_may_run_at_the_same_time(store: ObjectStore) -> None:
    async def use(number: int) -> None:
        key = f"{number % 3}/{number}"
        await store.put(key, [b"%d" % number])
        assert bytes(await store.get(key)) == b"%d" % number
        await store.delete([key])

    await asyncio.gather(*map(use, range(60)))
    assert await keys_of(store) == []
