"""The same in a bucket: an id that is deleted, and another prefix."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from strandline.objects import ObjectStore, open_objects
from strandline.objects.marker import STORE_ID_KEY, store_id
from tests.broker import running_broker
from tests.hybrid.test_starting import create, write
from tests.hybrid.test_stores_at_start import diskless
from tests.hybrid.test_wrong_store import read, refused, restart
from tests.s3 import S3, s3
from tests.waiting import wait_until

__all__ = ["s3"]

T = TypeVar("T")


def test_an_id_that_was_deleted_comes_back_and_another_prefix_is_refused(tmp_path: Path, s3: S3) -> None:
    bucket = s3.new_bucket()
    right, wrong = (dict(diskless(f"s3://{bucket}/{prefix}", s3.endpoint)) for prefix in ("right", "wrong"))

    async def take_id(store: ObjectStore) -> str | None:
        found = await store_id(store)
        await store.delete([STORE_ID_KEY])
        return found

    async def wrong_keys(store: ObjectStore) -> list[str]:
        return [info.key async for info in store.list("")]

    async def within_bucket(prefix: str, work: Callable[[ObjectStore], Awaitable[T]]) -> T:
        async with open_objects(f"s3://{bucket}/{prefix}", s3.object_options) as store:
            return await work(store)

    with running_broker(tmp_path / "data", right) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        given = asyncio.run(within_bucket("right", take_id))
        assert given is not None
        wait_until(
            lambda: asyncio.run(within_bucket("right", store_id)) == given, within=60.0, what="the id to be back"
        )
        assert write(broker, "t") is None
        assert f"strandline.objects.url=s3://{bucket}/wrong" in refused(broker, wrong)
        assert asyncio.run(within_bucket("wrong", wrong_keys)) == []
        restart(broker, right)
        assert read(broker, "t", 2) == [b"x", b"x"]
