"""A process that dies while it copies or deletes a segment: the next one repeats the call, and all is well."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.objects import open_objects
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.storage.objects import ObjectRemoteStorage
from tests.remote.segments import make_segment

SIGKILLED = -9
REPOSITORY = Path(__file__).parents[3]

COPY_AND_DELETE = """
import asyncio, sys
from pathlib import Path
from strandline.objects import open_objects
from strandline.remote.storage.objects import ObjectRemoteStorage
from tests.remote.segments import make_segment

async def main():
    made = make_segment(Path(sys.argv[2]))
    async with open_objects("file://" + sys.argv[1]) as store:
        storage = ObjectRemoteStorage(store)
        await storage.copy_log_segment_data(made.metadata, made.data)
        await storage.delete_log_segment_data(made.metadata)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("place", "has_log"),
    [
        ("objects.put.after_write", False),
        ("objects.put.after_publish:3", False),
        ("remote.storage.after_indexes", False),
        ("objects.put.after_write:5", False),
        ("objects.put.after_publish:5", True),
        ("remote.storage.after_log", True),
        ("remote.storage.after_log_deleted", False),
    ],
)
async def test_a_crash_leaves_a_whole_segment_or_one_without_a_log(
    tmp_path: Path, place: str, *, has_log: bool
) -> None:
    made = make_segment(tmp_path / "logs")
    command = [sys.executable, "-c", COPY_AND_DELETE, str(tmp_path / "remote"), str(tmp_path / "logs")]
    environment = {**os.environ, ENVIRONMENT_VARIABLE: place}
    ended = await asyncio.to_thread(subprocess.run, command, env=environment, cwd=REPOSITORY, check=False)
    assert ended.returncode == SIGKILLED
    async with open_objects(f"file://{tmp_path}/remote") as store:
        storage = ObjectRemoteStorage(store)
        if has_log:
            assert bytes(await storage.fetch_log_segment(made.metadata, 0, 5000)) == made.log
            for kind, content in made.contents.items():
                assert await storage.fetch_index(made.metadata, kind) == content
        else:
            with pytest.raises(RemoteResourceNotFound):
                await storage.fetch_log_segment(made.metadata, 0, 10)
        await storage.copy_log_segment_data(made.metadata, made.data)
        assert bytes(await storage.fetch_log_segment(made.metadata, 0, 5000)) == made.log
        await storage.delete_log_segment_data(made.metadata)
        assert [info async for info in store.list("")] == []
