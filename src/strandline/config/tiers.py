"""Switches of the storage tiers beyond local disks."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import BOOLEAN, setting
from strandline.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSettings:
    """Which tiers classic topics have. In this version: local disks only."""

    remote_log_storage_system_enable: bool = setting(
        "remote.log.storage.system.enable",
        BOOLEAN,
        False,
        "Topics may keep finished segments in remote storage. Not available in this version: only false is taken.",
    )

    def check(self) -> None:
        """Raise InvalidConfig for a tier that this version does not have."""
        if self.remote_log_storage_system_enable:
            raise InvalidConfig(
                "remote.log.storage.system.enable must be false: tiered storage is not available in this version."
            )
