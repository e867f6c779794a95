"""Puts the run into namespaces of its own, so that what it does to networks and disks is seen by nothing else.

A process without rights for that makes a run without these faults. Whatever was made in a namespace is gone when the
last process in it has ended, however it ended.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWNET: Final = 0x40000000
_PROGRAMS: Final = ("ip", "unshare", "nsenter", "mount", "umount", "mkfs.ext4", "fsfreeze")


def why_not() -> str | None:
    """Why the run cannot have namespaces of its own; None if it can."""
    if sys.platform != "linux":
        return "namespaces are a matter of Linux"
    if os.geteuid() != 0:
        return "namespaces need root"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"there is no {', '.join(missing)}" if missing else None


def enter() -> None:
    """Move this process, which has one thread yet, into a network and a tree of mounts of its own. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS | _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    command("mount", "--make-rprivate", "/")
    command("ip", "link", "set", "lo", "up")


def command(*words: str) -> None:
    """Run a program of the system. Raises OSError with what it has said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")


def inside(pid: int, *words: str) -> Sequence[str]:
    """A command in the network of a process."""
    return ("nsenter", "--target", str(pid), "--net", *words)
