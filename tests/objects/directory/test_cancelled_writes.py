"""Writes that are cancelled: their object has its name when they return, or never gets one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock, SystemIds
from strandline.objects.directory import DirectoryStore, files
from strandline.objects.store import Buffer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest_asyncio.fixture
async def store(root: Path) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(str(root), clock=SystemClock(), ids=SystemIds(), threads=2)
    await store.open()
    yield store
    await store.close()


async def test_a_cancelled_write_has_its_name_when_it_returns_or_never(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the object could appear after its key was deleted."""
    is_naming, may_name, rename = threading.Event(), threading.Event(), os.rename

    def held(source: str, target: str) -> None:
        is_naming.set()
        may_name.wait()
        rename(source, target)

    monkeypatch.setattr(os, "rename", held)
    writing = asyncio.ensure_future(store.put("wal/1/key", [b"x"]))
    await asyncio.to_thread(is_naming.wait)
    writing.cancel()
    await asyncio.wait([writing], timeout=0)
    await asyncio.wait([writing], timeout=0)
    was_over = writing.done()
    may_name.set()
    await asyncio.wait([writing])
    assert writing.cancelled()
    assert not was_over
    assert (root / "wal/1/key").exists()


async def test_a_write_that_was_cancelled_before_gets_no_name(
    store: DirectoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_writing, may_write, write = threading.Event(), threading.Event(), files.write_flushed

    def held(path: str, parts: Sequence[Buffer]) -> None:
        is_writing.set()
        may_write.wait()
        write(path, parts)

    monkeypatch.setattr(files, "write_flushed", held)
    writing = asyncio.ensure_future(store.put("wal/1/key", [b"x"]))
    await asyncio.to_thread(is_writing.wait)
    writing.cancel()
    await asyncio.wait([writing])
    assert writing.cancelled(), "it does not wait for a disk that hangs"
    may_write.set()
    await store.close()
    assert not (root / "wal/1/key").exists()
    assert [*(root / files.UPLOADS).iterdir()] == []
