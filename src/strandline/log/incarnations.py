"""What a log directory remembers of the broker's last incarnation: its epoch, and the boot of the machine it ran on.

A process that dies while its machine runs on loses nothing of what it wrote: that is in the page cache. So the next
incarnation has all that the last one had if that was stopped cleanly, or if the machine was not started again since. It
tells the controller, which otherwise has to assume that the replicas of this broker lack committed records.
"""

from __future__ import annotations

import json
import os
from typing import Final

from strandline.log.files import read_whole, write_atomically

INCARNATION: Final = ".strandline-incarnation"
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


def read_boot_id() -> str | None:
    """What changes when the machine is started again; None where there is no such thing."""
    try:
        return read_whole(_BOOT_ID).decode("ascii").strip() or None
    except OSError:
        return None


def write_incarnation(directory: str, broker_epoch: int, boot_id: str) -> None:
    """Remember that a broker of this epoch writes here. Raises OSError.

    Not forced to disk: after a crash of the machine the file counts for nothing.
    """
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch, "bootId": boot_id}, separators=(",", ":"))
    write_atomically(os.path.join(directory, INCARNATION), content.encode("ascii"), sync=False)


def read_incarnation(directory: str, boot_id: str) -> int:
    """The epoch of the last incarnation if it ran in this boot of the machine, otherwise -1. Raises OSError."""
    try:
        fields = json.loads(read_whole(os.path.join(directory, INCARNATION)))
        return int(fields["brokerEpoch"]) if fields["bootId"] == boot_id else -1
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1
