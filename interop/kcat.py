"""kcat, with the librdkafka of its distribution: an older client than the one in our tests.

Taken from the path, or from Debian's package unpacked into the cache (no root needed, nothing is installed).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from interop.broker import CACHE, Target
from interop.results import Outcome

NAME = "kcat"
SECONDS = 60.0
_PACKAGES = ("kcat", "librdkafka1", "libyajl2")


class KcatFailed(Exception):
    """kcat ended with an error, or printed something else than expected."""


def why_unavailable() -> str | None:
    if shutil.which("kcat") or (shutil.which("apt-get") and shutil.which("dpkg")):
        return None
    return "There is no `kcat` on the path, and no apt-get and dpkg to fetch it with."


class Kcat:
    """Runs kcat against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._program, self._libraries = prepare_kcat()

    def run(self, *arguments: str, stdin: str = "", expect: str = "") -> str:
        """What kcat printed. Raises KcatFailed unless it succeeds and prints `expect` (a pattern)."""
        command = [self._program, "-b", self._bootstrap, *arguments]
        environment = {**os.environ, "LD_LIBRARY_PATH": self._libraries}
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode != 0 or not re.search(expect, said, re.MULTILINE):
            raise KcatFailed(f"kcat {' '.join(arguments)} ended with {done.returncode}, expected {expect!r}:\n{said}")
        return said


def prepare_kcat() -> tuple[str, str]:
    """The program and the directory of its libraries."""
    installed = shutil.which("kcat")
    if installed:
        return installed, os.environ.get("LD_LIBRARY_PATH", "")
    root = CACHE / "kcat"
    program = root / "usr" / "bin" / "kcat"
    if not program.exists():
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", *_PACKAGES], cwd=root, check=True, capture_output=True)
        for package in root.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    libraries = {str(path.parent) for path in (root / "usr" / "lib").rglob("*.so*")}
    return str(program), ":".join(sorted(libraries))


def metadata(kcat: Kcat) -> None:
    kcat.run("-P", "-t", "kcat-metadata", "-p", "0", stdin="x\n")
    kcat.run("-L", "-t", "kcat-metadata", expect=r'topic "kcat-metadata" with 4 partitions')


def codecs(kcat: Kcat) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        lines = "".join(f"key-{number}:value-{codec}-{number}\n" for number in range(100))
        header = ("-H", f"codec={codec}")
        kcat.run("-P", "-t", "kcat-codecs", "-p", "1", "-K:", "-z", codec, *header, stdin=lines)
    shape = ("-f", "%o %k %s %h\\n")
    said = kcat.run("-C", "-t", "kcat-codecs", "-p", "1", "-o", "beginning", "-e", "-q", *shape)
    lines_read = said.splitlines()
    if len(lines_read) != 500 or "499 key-99 value-zstd-99 codec=zstd" not in lines_read:
        raise KcatFailed(f"{len(lines_read)} of 500 records came back; the last is {lines_read[-1:]}")


def offsets(kcat: Kcat) -> None:
    kcat.run("-P", "-t", "kcat-offsets", "-p", "0", stdin="a\nb\nc\n")
    kcat.run("-Q", "-t", "kcat-offsets:0:-1", expect=r"kcat-offsets \[0\] offset 3")
    kcat.run("-Q", "-t", "kcat-offsets:0:0", expect=r"kcat-offsets \[0\] offset 0")
    kcat.run("-C", "-t", "kcat-offsets", "-p", "0", "-o", "-1", "-e", "-q", expect=r"^c$")


def idempotent(kcat: Kcat) -> None:
    lines = "".join(f"{number}\n" for number in range(5000))
    how = ("-X", "enable.idempotence=true", "-X", "acks=all")
    kcat.run("-P", "-t", "kcat-idempotent", "-p", "0", *how, stdin=lines)
    said = kcat.run("-C", "-t", "kcat-idempotent", "-p", "0", "-o", "beginning", "-e", "-q")
    if said != lines:
        raise KcatFailed("the records are not what was sent, in the order it was sent")


def group(kcat: Kcat) -> None:
    kcat.run("-P", "-t", "kcat-group", "-p", "2", stdin="one\ntwo\n")
    settings = ("-X", "auto.offset.reset=earliest", "-c", "2", "-q")
    kcat.run("-G", "kcat-readers", *settings, "kcat-group", expect=r"^two$")


CHECKS: tuple[Callable[[Kcat], None], ...] = (metadata, codecs, offsets, idempotent, group)


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run every check, or the one named `only`."""
    log_file = target.suite_log
    log_file.write_text("")
    kcat = Kcat(target.bootstrap)
    chosen = [check for check in CHECKS if only is None or check.__name__ == only]
    return {check.__name__: _outcome(check, kcat, log_file) for check in chosen}


def _outcome(check: Callable[[Kcat], None], kcat: Kcat, log_file: Path) -> Outcome:
    try:
        check(kcat)
    except (KcatFailed, subprocess.TimeoutExpired) as failure:
        with log_file.open("a") as log:
            log.write(f"FAILED {check.__name__}: {failure}\n")
        return Outcome.FAILED
    return Outcome.PASSED
