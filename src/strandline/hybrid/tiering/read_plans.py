"""Where the records of a partition are, for readers that go to the stores themselves."""

from __future__ import annotations

from strandline.controlplane.ports import ControlPlane
from strandline.errors import UnsupportedVersion
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.tiered.topics import TieredTopics
from strandline.hybrid.tiering.led import LedPartitions
from strandline.tiering_api.values import PlanRead, ReadPlan


class ReadPlans:
    """Plans reads of led partitions."""

    def __init__(self, plane: ControlPlane, partitions: Partitions, tiered: TieredTopics, led: LedPartitions) -> None:
        self._plane, self._partitions, self._tiered, self._led = plane, partitions, tiered, led

    async def plan(self, request: PlanRead) -> ReadPlan:
        """Raises StrandlineError."""
        raise UnsupportedVersion(f"Reads of {request.topic} are not planned in this version.")
