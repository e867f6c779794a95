"""What a run has claimed: renewed while it works, given back when it ends."""

from __future__ import annotations

import logging
from uuid import UUID

from strandline.model import TopicIdPartition
from strandline.tiering.client import BrokersUnavailable, RequestRefused, TieringClient
from strandline.tiering_api.values import AbortSegment, BegunSegment, ReleaseFiles

logger = logging.getLogger(__name__)


class Holds:
    """Files that are claimed and segments that are begun, and are neither done nor given back."""

    def __init__(self, claimant: str) -> None:
        self._claimant = claimant
        self._files: set[str] = set()
        self._segments: dict[UUID, TopicIdPartition] = {}
        """In the order in which they were begun."""

    def __bool__(self) -> bool:
        return bool(self._files or self._segments)

    def hold_file(self, object_key: str) -> None:
        self._files.add(object_key)

    def drop_file(self, object_key: str) -> None:
        self._files.discard(object_key)

    def hold_segment(self, begun: BegunSegment) -> None:
        self._segments[begun.segment.segment_id] = begun.partition

    def drop_segment(self, segment_id: UUID) -> None:
        self._segments.pop(segment_id, None)

    def give_back(self, client: TieringClient) -> None:
        """All of it, at the end of a run. What no broker hears of now expires with its claim."""
        try:
            if self._files:
                client.release_files(ReleaseFiles(claimant=self._claimant, object_keys=tuple(sorted(self._files))))
                self._files.clear()
            done: set[TopicIdPartition] = set()
            for segment_id, partition in list(self._segments.items()):
                # With the first one of a partition, those behind it are given up too.
                if partition not in done:
                    abort(client, self._claimant, partition, segment_id)
                    done.add(partition)
                del self._segments[segment_id]
        except (BrokersUnavailable, RequestRefused) as error:
            logger.warning("claims could not be given back, and expire by themselves: %s", error)


def abort(client: TieringClient, claimant: str, partition: TopicIdPartition, segment_id: UUID) -> None:
    """Give up a segment. Raises BrokersUnavailable."""
    try:
        client.abort_segment(AbortSegment(claimant=claimant, partition=partition, segment_id=segment_id))
    except RequestRefused as error:
        logger.info("the segment is given up already: %s", error)
