"""Where the parts of the group get their brokers from, and how a measurement is named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from bench.generator import Generator
from bench.measures import Measured, Scale
from bench.systems import Strandline, StrandlineBroker, remote_dir

MASTER: Final = "local[2]"
CORES: Final = 2
DISKLESS: Final = {"diskless.enable": "true"}
KILOBYTE: Final = 1024


class TieringStep(NamedTuple):
    """One measurement. It is run before the next one is asked for."""

    title: str
    run: Callable[[], Measured]


@dataclass(frozen=True)
class TieringPlace:
    """One system, and a directory for all it needs."""

    system: Strandline
    generator: Generator
    scale: Scale
    home: Path
    cache: Path

    @property
    def is_quick(self) -> bool:
        return self.scale.share < 1

    @contextmanager
    def broker(self, name: str, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[StrandlineBroker]:
        """A broker for the time of a block; its files stay until the end of the run, as those of diskless topics do."""
        home = self.home / name
        broker = self.system.new_tiered_broker(home, {"rsm.config.url": f"file://{remote_dir(home)}", **settings})
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


def objects_dir(broker: StrandlineBroker) -> Path:
    """Where a broker keeps its WAL objects and split files."""
    return broker.data_dir / "objects"


def forget_pages(directory: Path) -> None:
    """Write all files below a directory back, and drop them from the page cache."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())  # pages that are not written back yet would stay
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def remove(directory: Path) -> None:
    """Delete a directory, and let the disk come to rest."""
    shutil.rmtree(directory, ignore_errors=True)
    os.sync()
