"""What components of every layer take."""

from __future__ import annotations

from typing import NamedTuple

from strandline.clock import Chance, Clock, Ids
from strandline.config import Settings
from strandline.model import BrokerId


class Base(NamedTuple):
    """The properties of the broker; time, ids and chance."""

    static: Settings
    """Without what the metadata says: `MetadataLayer.settings` has both."""
    clock: Clock
    ids: Ids
    chance: Chance

    @property
    def node_id(self) -> BrokerId:
        """The id of the broker."""
        return self.static.cluster.node_id
