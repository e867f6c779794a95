"""A real S3 server on this machine: versitygw, built once with Go, on a directory.

server = s3_server.build(cache)                      # minutes, once; None where there is no Go
with s3_server.running(server, directory) as s3:
    s3.settings("bucket")                            # for a broker
"""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.process import ProcessFailed, ServerProcess, free_port

VERSION: Final = "v1.8.0"
_MODULE: Final = "github.com/versity/versitygw/cmd/versitygw"
_KEY: Final = "bench"
_SECRET: Final = "bench-secret"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server. Its buckets are directories."""

    endpoint: str
    buckets: Path

    def settings(self, bucket: str) -> Mapping[str, str]:
        """Settings of a broker that keeps diskless topics in a new bucket."""
        (self.buckets / bucket).mkdir()
        return {"strandline.objects.url": f"s3://{bucket}/diskless", **self._access()}

    def remote_settings(self, bucket: str) -> Mapping[str, str]:
        """Settings of a broker that keeps the remote segments of tiered topics in a new bucket."""
        (self.buckets / bucket).mkdir()
        access = {f"rsm.config.{name}": value for name, value in self._access().items()}
        return {"rsm.config.url": f"s3://{bucket}/tiered", **access}

    def _access(self) -> Mapping[str, str]:
        return {
            "inkless.storage.s3.endpoint.url": self.endpoint,
            "inkless.storage.s3.region": "us-east-1",
            "inkless.storage.aws.access.key.id": _KEY,
            "inkless.storage.aws.secret.access.key": _SECRET,
        }


def why_unavailable(cache: Path) -> str | None:
    """A sentence naming what is missing, or None."""
    if _program(cache).exists() or shutil.which("go") is not None:
        return None
    return "An S3 server is built with Go, and no `go` is on the path."


def build(cache: Path) -> Path:
    """The program; built when it is not there yet. Raises ProcessFailed."""
    program = _program(cache)
    if not program.exists():
        environment = {**os.environ, "GOBIN": str(program.parent)}
        command = ["go", "install", f"{_MODULE}@{VERSION}"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        if run.returncode != 0:
            raise ProcessFailed(f"Go could not build the S3 server:\n{run.stderr[-2000:]}")
    return program


@contextmanager
def running(program: Path, directory: Path) -> Iterator[S3Server]:
    """Serve buckets below `directory` until the block ends."""
    buckets = directory / "buckets"
    buckets.mkdir(parents=True)
    port = free_port()
    command = [str(program), "--port", f"127.0.0.1:{port}", "--access", _KEY, "--secret", _SECRET, "--keep-alive"]
    process = ServerProcess(
        [*command, "--quiet", "posix", str(buckets)], log_file=directory / "s3.log", name="the S3 server"
    )
    server = S3Server(f"http://127.0.0.1:{port}", buckets)
    try:
        process.wait_until(lambda: _answers(server.endpoint), timeout=30.0, what="to answer")
        yield server
    finally:
        process.stop()


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint, timeout=1):
            return True
    except urllib.error.HTTPError:
        return True  # it wants a signature
    except OSError:
        return False


def _program(cache: Path) -> Path:
    return cache.resolve() / "bench" / "tools" / f"versitygw-{VERSION}" / "versitygw"
