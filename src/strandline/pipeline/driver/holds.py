"""What a run has claimed: renewed while it works, given back when it ends."""

from __future__ import annotations

import logging
from typing import NamedTuple
from uuid import UUID

from strandline.conversion_api.values import AbortSegment, BegunSegment, ReleaseFiles
from strandline.model import TopicIdPartition
from strandline.pipeline.client import BrokersUnavailable, RequestRefused, TieringClient

logger = logging.getLogger(__name__)


class BegunBy(NamedTuple):
    """A segment that is under way."""

    partition: TopicIdPartition
    claimant: str


class Holds:
    """Files that are claimed and segments that are begun, and are neither done nor given back."""

    def __init__(self, claimant: str) -> None:
        self._claimant = claimant
        self._files: set[str] = set()
        self._segments: dict[UUID, BegunBy] = {}
        """In the order in which they were begun."""

    def __bool__(self) -> bool:
        return bool(self._files or self._segments)

    def hold_file(self, object_key: str) -> None:
        self._files.add(object_key)

    def drop_file(self, object_key: str) -> None:
        self._files.discard(object_key)

    def hold_segment(self, begun: BegunSegment, claimant: str) -> None:
        self._segments[begun.segment.segment_id] = BegunBy(begun.partition, claimant)

    def drop_segment(self, segment_id: UUID) -> None:
        self._segments.pop(segment_id, None)

    def give_back(self, client: TieringClient) -> None:
        """All of it, at the end of a run. What no broker hears of now expires with its claim."""
        try:
            if self._files:
                client.release_files(ReleaseFiles(claimant=self._claimant, object_keys=tuple(sorted(self._files))))
                self._files.clear()
            self.give_up_segments(client)
        except (BrokersUnavailable, RequestRefused) as error:
            logger.warning("claims could not be given back, and expire by themselves: %s", error)

    def give_up_segments(self, client: TieringClient) -> dict[TopicIdPartition, str]:
        """Those that are begun and will not be built. Partitions whose leader did not hear of it, and why: theirs
        are still held, since nothing else can be begun there until they are given up."""
        gone: set[BegunBy] = set()
        away: dict[TopicIdPartition, str] = {}
        for segment_id, begun in list(self._segments.items()):
            # With the first one of a partition, those behind it are given up too.
            if begun not in gone and begun.partition not in away:
                trouble = abort(client, begun.claimant, begun.partition, segment_id)
                if trouble:
                    away[begun.partition] = trouble
                else:
                    gone.add(begun)
            if begun in gone:
                self._segments.pop(segment_id, None)
        return away


def abort(client: TieringClient, claimant: str, partition: TopicIdPartition, segment_id: UUID) -> str:
    """Give up a segment, and those behind it. Why its leader did not hear of it; empty if it did."""
    try:
        client.abort_segment(AbortSegment(claimant=claimant, partition=partition, segment_id=segment_id))
    except RequestRefused as error:
        logger.info("the segment is given up already: %s", error)
    except BrokersUnavailable as error:
        logger.info("a segment of %s is given up later, or when its claim expires: %s", partition, error)
        return str(error)
    return ""
