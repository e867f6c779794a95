"""A real S3 server for tests: one process per test session, a fresh bucket for each test that asks for one."""

from __future__ import annotations

import atexit
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache

import pytest

from strandline.objects import ObjectOptions, Patience, S3Options
from tests.link import Link
from tests.waiting import wait_until

_numbers = itertools.count(1)
_ATTEMPTS = 4
# Workers of a parallel test run end without a word: the server ends by itself when its input does.
_SERVER = """
import os, sys, threading

def end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)

threading.Thread(target=end_with_parent, daemon=True).start()
from moto.server import main
main(sys.argv[1:])
"""


class S3:
    """The server of this session. Made by `start_s3`, and ended when the process ends."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed at the end of the process)
        atexit.register(self._log.close)
        for _ in range(_ATTEMPTS):  # another process may take the port before the server does
            self.endpoint = f"http://127.0.0.1:{_free_port()}"
            self._server = self._start()
            if (
                wait_until(lambda: "ended" if self._server.poll() is not None else self._answers(), within=60)
                != "ended"
            ):
                return
        self._log.seek(0)
        raise RuntimeError(f"The S3 server does not start: {self._log.read().decode(errors='replace')[-2000:]}")

    @property
    def options(self) -> S3Options:
        """What a client needs to know."""
        return S3Options(
            endpoint_url=self.endpoint, region="us-east-1", access_key_id="test", secret_access_key="test-secret"
        )

    @property
    def object_options(self) -> ObjectOptions:
        """The same for `open_objects`. Patient, because the machine that runs the tests may be busy."""
        return ObjectOptions(s3=self.options, patience=Patience(attempt_deadline=30, deadline=60, list_deadline=30))

    @property
    def port(self) -> int:
        return int(self.endpoint.rpartition(":")[2])

    def new_bucket(self) -> str:
        """The name of an empty bucket of its own."""
        name = f"bucket-{os.getpid()}-{next(_numbers)}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return name

    def stop(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-c", _SERVER, "-H", "127.0.0.1", "-p", str(self.port)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._log, stderr=self._log)
        atexit.register(self.stop)
        return server

    def _answers(self) -> str | None:
        try:
            with urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=5):
                return "answers"
        except (urllib.error.URLError, OSError):
            return None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@cache
def start_s3() -> S3:
    """The server of this session, started at first use."""
    return S3()


@pytest.fixture
def s3() -> S3:
    """The server of this session."""
    return start_s3()


@pytest.fixture
def s3_url(s3: S3) -> str:
    """The address of an empty prefix in a fresh bucket."""
    return f"s3://{s3.new_bucket()}/some/prefix"


@pytest.fixture
def s3_link(s3: S3) -> Iterator[Link]:
    """A way to the server that breaks when a test wants it to."""
    with Link(("127.0.0.1", s3.port)) as link:
        yield link
