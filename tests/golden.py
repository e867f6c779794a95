"""Golden data: log directories that Apache Kafka 4.3.1 wrote, and what Kafka itself says about them.

Import the fixtures into the conftest of a test directory: `from tests.golden import kafka_classic as kafka_classic`.
The unpacked directories are shared by the whole session: a test that writes works on a copy (`copy_of`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"


_unpacked_archives: dict[str, Path] = {}


def _unpacked(archive: str, factory: pytest.TempPathFactory) -> Path:
    """Several conftests may import the fixtures: each archive is still unpacked once."""
    if archive not in _unpacked_archives:
        directory = factory.mktemp("golden")
        with tarfile.open(DATA / archive) as tar:
            tar.extractall(directory, filter="data")
        _unpacked_archives[archive] = directory
    return _unpacked_archives[archive]


@pytest.fixture(scope="session")
def kafka_classic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `classic/` (a log directory after a clean stop) and `expected/classic/`."""
    return _unpacked("kafka-4.3.1-classic.tar.xz", tmp_path_factory)


@pytest.fixture(scope="session")
def kafka_unclean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `unclean/<damage>/` (log directories after a SIGKILL) and `expected/unclean/`."""
    return _unpacked("kafka-4.3.1-unclean.tar.xz", tmp_path_factory)


@pytest.fixture(scope="session")
def kafka_tiered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `tiered/local/` (after a clean stop), `tiered/remote/` and `expected/tiered/`."""
    return _unpacked("kafka-4.3.1-tiered.tar.xz", tmp_path_factory)


def copy_of(source: Path, target: Path) -> Path:
    """Copy a golden directory so that a test may change it."""
    shutil.copytree(source, target)
    return target


def read_json(path: Path) -> Any:
    """One of the files under `expected/`."""
    return json.loads(path.read_text(encoding="utf-8"))


def matches(actual: bytes | None, expected: dict[str, Any] | None) -> bool:
    """Whether bytes are what the JSON describes: text, base64, or length and digest of a long value."""
    if expected is None or actual is None:
        return expected is None and actual is None
    if "s" in expected:
        return actual == str(expected["s"]).encode("utf-8")
    if "b64" in expected:
        return actual == base64.b64decode(expected["b64"])
    return (len(actual), hashlib.sha256(actual).hexdigest()) == (expected["len"], expected["sha256"])
