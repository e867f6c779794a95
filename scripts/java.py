"""Makes sure that there is a Java for Spark.

Where there is none, Debian and Ubuntu have a package of it: it is downloaded and unpacked under `.cache/java` of this
checkout, without root. Elsewhere a sentence says what to install.

`make test` and `make demo` run it first; nothing happens where a Java is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.java import find_java

ROOT: Final = Path(__file__).resolve().parents[1]
CACHE: Final = ROOT / ".cache"
PACKAGES: Final = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")
SECONDS: Final = 600


def main() -> int:
    """0 if there is a Java for Spark now."""
    try:
        found = find_java()
    except PipelineFailed as error:
        reason = str(error)
    else:
        if "--print" in sys.argv:
            print(found.home)
        return 0
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return complain(reason)
    print(
        "There is no Java for Spark here: downloading one to .cache/java (44 MB; the system is not changed).",
        flush=True,
    )
    try:
        bring()
        found = find_java()
    except (PipelineFailed, OSError, subprocess.SubprocessError) as error:
        return complain(f"{reason} Downloading one did not work: {error}")
    print(f"Java {found.version} is in {found.home.relative_to(ROOT)}.")
    return 0


def complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


def bring() -> None:
    """Download and unpack next to its place, then move it there: nobody finds half of it."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="java-") as made:
        work = Path(made)
        package = download(work)
        root = work / "root"
        subprocess.run(["dpkg", "-x", package, root], check=True, timeout=SECONDS)
        program = next((root / "usr/lib/jvm").glob("*/bin/java"), None)
        if program is None:
            raise OSError(f"{package.name} has no usr/lib/jvm/*/bin/java")
        point_inside(root)
        # Its settings are in /etc of the package, and stay where they are below it.
        place = CACHE / "java-root"
        shutil.rmtree(place, ignore_errors=True)
        root.rename(place)
        link = CACHE / "java"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("java-root") / program.parent.parent.relative_to(root))


def download(work: Path) -> Path:
    """The package, with the lists of packages that this machine has, or else with lists of our own."""
    lists = work / "lists"
    (lists / "partial").mkdir(parents=True)
    archives = work / "archives"
    (archives / "partial").mkdir(parents=True)
    own = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={work}", "-o", f"Dir::Cache::Archives={archives}"]
    said = []
    for options in ([], own):
        if options:
            # Hooks of the system may fail without root although the lists are there: the download decides.
            said.append(apt([*options, "update"], work))
        for name in PACKAGES:
            said.append(apt([*options, "download", name], work))
            if packages := list(work.glob("*.deb")):
                return packages[0]
    raise OSError(f"apt-get says: {' '.join(' '.join(said).split())[-600:]}")


def apt(arguments: list[str], work: Path) -> str:
    """What apt-get complains about."""
    # It would give up root for the download, and could not write to our directory then.
    who = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    answer = subprocess.run(
        ["apt-get", "-qq", *who, *arguments], cwd=work, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return answer.stderr


def point_inside(root: Path) -> None:
    """Links of the package name places below /: make them name the places below `root`."""
    for path in root.rglob("*"):
        if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
            inside = root / target.removeprefix("/")
            path.unlink()
            path.symlink_to(os.path.relpath(inside, path.parent))


if __name__ == "__main__":
    sys.exit(main())
