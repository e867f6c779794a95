"""What a log directory remembers of the broker's last incarnation: its epoch, and the boot of the machine it ran on.

A process that dies while its machine runs on loses nothing of what it wrote: that is in the page cache. So the next
incarnation has all that the last one had if that was stopped cleanly, or if the machine was not started again since. It
tells the controller, which otherwise has to assume that the replicas of this broker lack committed records.

A process may die after the controller has registered it and before it knows its epoch. It writes nothing in that time.
So each notes its own incarnation id before it registers, and the next one finds the epoch in the metadata.
"""

from __future__ import annotations

import json
import os
from typing import Final, NamedTuple
from uuid import UUID

from strandline.log.files import read_whole, write_atomically

INCARNATION: Final = ".strandline-incarnation"
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class KeptIncarnation(NamedTuple):
    """Whose records are all here: those of the incarnation with this broker epoch (-1: of none), and of the one with
    this id, if there is one, which was about to register."""

    broker_epoch: int = -1
    incarnation_id: UUID | None = None

    def newest_epoch(self, registered_id: UUID, registered_epoch: int) -> int:
        """The epoch of the newer of both, where the metadata has an incarnation of this id and epoch."""
        return registered_epoch if self.incarnation_id == registered_id else self.broker_epoch


def read_boot_id() -> str | None:
    """What changes when the machine is started again; None where there is no such thing."""
    try:
        return read_whole(_BOOT_ID).decode("ascii").strip() or None
    except OSError:
        return None


def write_incarnation(directory: str, kept: KeptIncarnation, boot_id: str) -> None:
    """Remember who writes here. Raises OSError.

    Not forced to disk: after a crash of the machine the file counts for nothing.
    """
    fields = {"version": 0, "brokerEpoch": kept.broker_epoch, "bootId": boot_id}
    if kept.incarnation_id is not None:
        fields["incarnationId"] = kept.incarnation_id.hex
    content = json.dumps(fields, separators=(",", ":"))
    write_atomically(os.path.join(directory, INCARNATION), content.encode("ascii"), sync=False)


def read_incarnation(directory: str, boot_id: str) -> KeptIncarnation:
    """Whose records are here; those of none if the machine was started again since. Raises OSError."""
    try:
        fields = json.loads(read_whole(os.path.join(directory, INCARNATION)))
        if fields["bootId"] != boot_id:
            return KeptIncarnation()
        incarnation_id = fields.get("incarnationId")
        return KeptIncarnation(int(fields["brokerEpoch"]), None if incarnation_id is None else UUID(incarnation_id))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return KeptIncarnation()
