"""The log of a topic that is to be switched lies in a log directory that is offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.errors import KafkaStorageError
from strandline.hybrid.switching.status import MigrationPhase
from tests.hybrid.switching.world import SwitchingBroker, switching_broker

ONE_AT_A_TIME = {"inkless_migration_parallel_topics": "1"}


async def waiting_in(broker: SwitchingBroker, directory: Path) -> str:
    """A topic with three records in this log directory, whose switch waits for that of another topic."""
    await broker.create("first", records=1)
    await broker.flag("first", is_diskless=True)
    await broker.switched("first")
    for name in map(str, range(9)):
        await broker.create(name, records=3)
        if broker.broker.replicas.find(name, 0).log.directory.parent == directory:
            break
    await broker.flag(name, is_diskless=True)
    await broker.until(lambda: (found := broker.known(name)) is not None and found.phase is MigrationPhase.WAITING)
    return name


async def test_it_is_not_switched_without_its_records(tmp_path: Path) -> None:
    directories = [tmp_path / "logs-1", tmp_path / "logs-2"]
    dirs = {"log_dirs": ",".join(map(str, directories))}
    async with switching_broker(tmp_path, **dirs, **ONE_AT_A_TIME) as broker:
        name = await waiting_in(broker, directories[1])
    directories[1].rename(tmp_path / "away")
    directories[1].write_text("This is no directory.")
    async with switching_broker(tmp_path, **dirs) as broker:
        await broker.until(lambda: not broker.broker.diskless.unserved)
        with pytest.raises(KafkaStorageError, match="offline"):
            broker.served(name)
        assert broker.known(name) is None
