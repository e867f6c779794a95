"""Addresses in use and files where directories should be end a start with one sentence, before the broker registers."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from strandline.broker import Broker, BrokerFailed
from strandline.config import Settings
from tests.broker import BrokerProcess, free_port


def refused(data: Path, settings: Mapping[str, str], *, port: int | None = None, http_port: int | None = None) -> str:
    """Start a broker that ends by itself; what it says."""
    broker = BrokerProcess(data, settings=settings, port=port or free_port(), http_port=http_port or free_port())
    try:
        broker.spawn()
        assert broker.wait() == 1
        assert "Traceback" not in broker.log_text
        return broker.log_text
    finally:
        broker.close()


@pytest.mark.parametrize("which", ["port", "http_port"])
def test_an_address_in_use_is_found_before_the_broker_registers(tmp_path: Path, which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        log = refused(tmp_path / "data", {}, **{which: port})
    assert f"127.0.0.1:{port}" in log
    assert ("strandline.http.listen" if which == "http_port" else "`listeners`") in log
    assert "registered broker" not in log


def test_a_log_directory_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    log = refused(tmp_path / "data", {"log.dirs": str(file)})
    assert f"usable. {file}: it is not a directory" in log.splitlines()[-1]
    assert "log.dirs" in log


def test_a_database_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    log = refused(tmp_path / "data", {"strandline.metadata.url": f"sqlite:///{file}/metadata.db"})
    assert f"{file} is not a directory. See strandline.metadata.url." in log


def test_remote_storage_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    settings = {"remote.log.storage.system.enable": "true", "rsm.config.url": f"file://{file}"}
    log = refused(tmp_path / "data", settings)
    assert f"rsm.config.url cannot be used. file://{file} is not a directory." in log


async def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(BrokerFailed, match=f"strandline.data.dir={file} is not a directory"):
        async with Broker(Settings.from_properties({"strandline.data.dir": str(file)})):
            pytest.fail("it started")
