"""Splitting and merging on a real S3 server: WAL objects, split files and segments in buckets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.pipeline.damage import DamagedWalObject, MissingObject
from strandline.pipeline.stores import StoreSettings, open_stores
from tests.pipeline.layouts import OTHERS, Produced, WalWorld, open_wal_world, produced
from tests.s3 import S3
from tests.s3 import s3 as s3
from tests.s3 import s3_url as s3_url

BATCHES = [*(Produced(produced(5, size=30_000)) for _ in range(4)), Produced(produced(3), OTHERS)]


def settings(s3: S3, s3_url: str) -> dict[str, str]:
    access = {
        "storage.s3.endpoint.url": s3.endpoint,
        "storage.s3.region": "us-east-1",
        "storage.aws.access.key.id": "test",
        "storage.aws.secret.access.key": "test-secret",
    }
    return {
        "strandline.objects.url": f"{s3_url}/objects",
        "rsm.config.url": f"{s3_url}/segments",
        **{f"{prefix}inkless.{name}": value for prefix in ("", "rsm.config.") for name, value in access.items()},
    }


async def test_segments_on_s3_are_those_in_a_directory(tmp_path: Path, s3: S3, s3_url: str) -> None:
    found = []
    async with (
        open_stores(StoreSettings(settings(s3, s3_url))) as stores,
        open_wal_world(tmp_path / "directory") as local,
    ):
        away = WalWorld(stores, tmp_path)
        for world in (away, local):
            file = await world.write(BATCHES)
            split, _ = await world.split(file, buffer_bytes=1)  # in pieces, by way of a temporary file
            begun = world.begun([split.file])
            await world.merge(begun, buffer_bytes=1)
            found.append((await world.bytes_of(split), await world.files(begun)))
        assert found[0] == found[1]
        short = await away.write(BATCHES)
        beyond = short.splits[1].rows[0]._replace(byte_offset=short.size + 5)
        splits = (short.splits[0], replace(short.splits[1], rows=(beyond,)))
        with pytest.raises(DamagedWalObject, match="the object ends at byte"):
            await away.split(replace(short, size=1 << 20, splits=splits))
        await stores.objects.delete([short.object_key, split.file.object_key])
        with pytest.raises(MissingObject, match="s3://"):
            await away.split(short)
