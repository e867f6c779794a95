"""Links and disks in namespaces of a process of its own: `python -m tests.chaos.isolated DIRECTORY`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from chaos.disks import Disk
from chaos.network import Network, address_of, between

from chaos import isolation
from tests.nursery import Nursery
from tests.waiting import wait_until

_PORT = 9000
_SERVER = f"""
import socket
server = socket.create_server(("0.0.0.0", {_PORT}))
print("listening", flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"here")
    client.close()
"""
_CLIENT = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1.0).recv(9) == b"here")
except TimeoutError:
    print(False)
"""
_SIZE = 32 << 20


def cut_links() -> None:
    """Two brokers and the run: only what is cut is cut, and it comes back."""
    network = Network()
    network.open()
    servers = []
    for node_id in (1, 2):
        network.add(node_id, Nursery({**os.environ}, within=("unshare", "--net")))
        command = isolation.inside(network.nurseries[node_id].pid, sys.executable, "-c", _SERVER)
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        server.stdout.readline()
        servers.append(server)
    try:
        assert _reaches(network, 1, 2)
        assert _reaches(network, 2, 1)
        for links in ([(1, 2)], [(2, 1)], between(1, [1, 2])):
            with network.cut(links):
                assert not _reaches(network, 1, 2), links  # an answer takes both directions
                assert not _reaches(network, 2, 1), links
                for node_id in (1, 2):
                    with closing(socket.create_connection((address_of(node_id), _PORT), timeout=5.0)) as there:
                        assert there.recv(9) == b"here"
            assert _reaches(network, 1, 2), links
    finally:
        for server in servers:
            server.kill()
            server.communicate()
        network.close()


def _reaches(network: Network, node_id: int, other: int) -> bool:
    command = isolation.inside(
        network.nurseries[node_id].pid, sys.executable, "-c", _CLIENT, address_of(other), str(_PORT)
    )
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "True"


def trouble_disks(directory: Path) -> None:
    """A disk is full, hangs and is slow, and then it is none of that."""
    disk = Disk.mounted(directory / "disk", size=_SIZE)
    assert list(disk.path.iterdir()) == []
    with disk.full(), pytest.raises(OSError, match="No space left"):
        _write(disk)
    _write(disk)
    with disk.hanging():
        writer = threading.Thread(target=_write, args=[disk])
        writer.start()
        writer.join(0.5)
        assert writer.is_alive()
    writer.join(30)
    assert not writer.is_alive()
    with disk.slow():
        _write(disk)
    _write(disk)
    pid = os.fork()
    if pid == 0:
        with disk.hanging():
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    _write(disk)  # the disk goes on although the process that stopped it was killed
    wait_until(lambda: _is_unmounted(disk), within=30, what="the disk to be unused")


def _write(disk: Disk) -> None:
    (disk.path / "one").write_bytes(b"x" * 10_000)


def _is_unmounted(disk: Disk) -> bool:
    try:
        disk.unmount()
    except OSError:
        return False  # what held it is about to end
    return True


if __name__ == "__main__":
    isolation.enter()
    cut_links()
    trouble_disks(Path(sys.argv[1]))
    print("all is well")
