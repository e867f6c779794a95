"""The parts of tiered storage of one broker, once it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a broker without tiered storage does not load them
    from strandline.remote.deadline_storage import DeadlineStorage
    from strandline.remote.ports import RemoteLogMetadataManager


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTier:
    """What tiered partitions use, and what works for them in the background."""

    storage: DeadlineStorage
    metadata: RemoteLogMetadataManager
