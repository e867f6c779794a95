"""Where switched partitions start, for others that serve them: before remote storage deletes what is below."""

from __future__ import annotations

from strandline.hybrid.switching.prefixes import PrefixKeeper
from strandline.hybrid.switching.switches import TopicSwitches
from strandline.replication import Partition


class LogStarts:
    """Of the partitions of which this broker has the older part."""

    def __init__(self, switches: TopicSwitches, prefixes: PrefixKeeper) -> None:
        self._switches, self._prefixes = switches, prefixes

    async def tell(self, replica: Partition) -> None:
        """Tell where the log of a replica starts; nothing needs to be told of one that is not switched."""
        switch = self._switches.find(replica)
        if switch is not None:
            await self._prefixes.tell_log_start(switch)
