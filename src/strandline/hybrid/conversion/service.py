"""Answers the tiering API: checks what is asked, and passes it on to the control plane or to the leader's part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from strandline.clock import Clock
from strandline.config import Settings, TopicConfig
from strandline.controlplane.conversion import MergeableSplits, SplitClaims, TieringRule, TieringWishes, TopicTiering
from strandline.conversion_api.values import (
    AbortSegment,
    BeginSegment,
    BegunSegment,
    ClaimedFiles,
    ClaimFiles,
    ClusterDescription,
    CommitSegment,
    CommittedSegment,
    ListMerges,
    ListTriggers,
    MergeRange,
    MergeRanges,
    PlanRead,
    ReadPlan,
    RecordedSplits,
    RecordSplits,
    ReleaseFiles,
    RenewClaims,
    RenewedClaims,
    TieringStatus,
    Triggers,
)
from strandline.errors import InvalidRequest, UnknownTopicOrPartition
from strandline.hybrid.conversion.checks import check_claim_ms, check_claimant, check_split
from strandline.hybrid.conversion.describing import describe, statuses_of
from strandline.hybrid.conversion.figures import TieringFigures
from strandline.hybrid.conversion.led_tiers import DisklessTiers, LedTiers
from strandline.hybrid.conversion.ranges import plan_ranges_of
from strandline.hybrid.conversion.read_plans import ReadPlans
from strandline.hybrid.conversion.rules import rule_of, sizes_of
from strandline.hybrid.conversion.translating import (
    claim_wish,
    claimed_files,
    recorded_splits,
    renewed_claims,
    splits_to_record,
)
from strandline.hybrid.conversion.uploads import LeaderUploads
from strandline.hybrid.diskless.refusals import storage_errors
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.metadata import Images, TopicImage

_MOST_SPLITS: Final = 10_000
"""Split files of one partition that are looked at for one answer."""
_MOST_CLAIMS: Final = 10_000


class TieringService:
    """The tiering API of one broker. All methods raise StrandlineError, with a sentence for people."""

    def __init__(
        self,
        diskless: DisklessTopics,
        uploads: LeaderUploads,
        read_plans: ReadPlans,
        tiers: LedTiers,
        images: Images,
        *,
        claims: SplitClaims,
        merging: MergeableSplits,
        wishes: TieringWishes,
        settings: Callable[[], Settings],
        topic_config: Callable[[str], TopicConfig],
        figures: TieringFigures,
        clock: Clock,
    ) -> None:
        self._claims, self._merging, self._wishes = claims, merging, wishes
        self._diskless, self._uploads, self._read_plans, self._tiers = diskless, uploads, read_plans, tiers
        self._images, self._settings, self._topic_config = images, settings, topic_config
        self._figures, self._clock = figures, clock
        self._claimed_at: dict[str, float] = {}

    def figures(self) -> TieringFigures:
        """Counters since the start."""
        return self._figures

    async def describe(self) -> ClusterDescription:
        """Which cluster this is, and how to reach its stores."""
        return describe(self._settings(), self._images.image.cluster_id)

    # Splitting

    async def claim_files(self, request: ClaimFiles) -> ClaimedFiles:
        """Claim WAL objects with rows that may be converted."""
        check_claimant(request.claimant)
        check_claim_ms(request.claim_ms)
        if not 0 < request.max_files <= _MOST_CLAIMS or request.max_rows <= 0:
            raise InvalidRequest("max_files and max_rows have to be greater than 0.")
        self._check_remote()
        rules = self._rules(request.topics)
        with storage_errors("the claim of WAL objects"):
            granted = await self._claims.claim_wal_files_for_splitting(claim_wish(request), rules)
        if len(self._claimed_at) > _MOST_CLAIMS:
            self._claimed_at.clear()
        now = self._clock.monotonic()
        self._claimed_at.update((file.object_key, now) for file in granted.files)
        return claimed_files(granted)

    async def record_splits(self, request: RecordSplits) -> RecordedSplits:
        """The split files of some WAL objects are written."""
        check_claimant(request.claimant)
        for split in request.splits:
            check_split(split)
        with storage_errors("the record of split files"):
            answer = await self._claims.record_splits(splits_to_record(request))
        self._figures.batches_split += sum(
            split.file.batch_count for split in request.splits if split.file.object_key not in answer.refused
        )
        now = self._clock.monotonic()
        for key in request.object_keys:
            claimed = self._claimed_at.pop(key, None)
            if claimed is not None:
                self._figures.split_latency.add(now - claimed)
        return recorded_splits(answer)

    async def release_files(self, request: ReleaseFiles) -> None:
        """Give up claims of files."""
        with storage_errors("the release of WAL objects"):
            await self._claims.release_wal_file_claims(request.claimant, request.object_keys)

    async def renew_claims(self, request: RenewClaims) -> RenewedClaims:
        """Make all claims of a claimant last longer."""
        check_claimant(request.claimant)
        check_claim_ms(request.claim_ms)
        until = self._clock.monotonic() + request.claim_ms / 1000
        self._figures.failing.heard(request.claimant, max(request.failing, 0), until=until)
        with storage_errors("the renewal of claims"):
            return renewed_claims(await self._claims.renew_claims(request.claimant, claim_ms=request.claim_ms))

    async def list_triggers(self, request: ListTriggers) -> Triggers:
        """Which topics operators have triggered. Cheap: no rows are counted."""
        with storage_errors("the triggers of topics"):
            wishes = await self._wishes.tiering_wishes()
        found = {topic.name: wishes.get(topic.topic_id, TopicTiering()) for topic in self._topics(request.topics)}
        return Triggers(
            triggered_at_ms={
                name: wish.triggered_at_ms
                for name, wish in found.items()
                if wish.triggered_at_ms is not None and not wish.is_paused
            }
        )

    # Merging

    async def list_merges(self, request: ListMerges) -> MergeRanges:
        """Which split files can be merged now."""
        self._check_remote()
        topics = {topic.topic_id: topic for topic in self._topics(request.topics)}
        with storage_errors("the list of split files"):
            found = await self._merging.mergeable_splits(topics.keys(), max_splits=_MOST_SPLITS)
        settings = self._settings().tiering
        ranges: list[MergeRange] = []
        for log in found:
            topic = topics[log.log.partition.topic_id]
            ranges += plan_ranges_of(log, sizes_of(self._topic_config(topic.name), settings))
            if len(ranges) >= request.max_ranges:
                break
        return MergeRanges(ranges=tuple(ranges[: request.max_ranges]))

    async def begin_segment(self, request: BeginSegment) -> BegunSegment:
        """Announce a segment. Only the leader of its partition can."""
        check_claimant(request.claimant)
        check_claim_ms(request.claim_ms)
        self._check_remote()
        return await self._uploads.begin(request)

    async def commit_segment(self, request: CommitSegment) -> CommittedSegment:
        """All bytes of a segment are in remote storage. Only the leader of its partition can take it over."""
        self._check_remote()
        return await self._uploads.commit(request)

    async def abort_segment(self, request: AbortSegment) -> None:
        """A segment will not be finished."""
        await self._uploads.abort(request)

    # Reading

    async def plan_read(self, request: PlanRead) -> ReadPlan:
        """Where the records of a partition are."""
        return await self._read_plans.plan(request)

    # Topics

    async def statuses(self, topics: tuple[str, ...] = ()) -> tuple[TieringStatus, ...]:
        """How far topics are converted; all diskless ones if none is named."""
        with storage_errors("the status of conversion"):
            return statuses_of(await self._wishes.tiering_progress(self._rules(topics)))

    async def tiers(self, topic: str) -> tuple[DisklessTiers, ...]:
        """Where the records of a topic are, in the diskless partitions that this broker leads."""
        found = self._images.image.topics.get(topic)
        if found is None or not self._topic_config(topic).diskless_enable:
            return ()  # a request about a classic topic does not wait for the control plane
        return await self._tiers.of_topic(found)

    async def pause(self, topic: str, *, is_paused: bool) -> TieringStatus:
        """Pause or resume the conversion of a topic."""
        (known,) = self._topics((topic,))
        with storage_errors(f"the conversion of {topic}"):
            await self._wishes.pause_tiering(known.topic_id, is_paused=is_paused)
        return await self._status(topic)

    async def trigger(self, topic: str) -> TieringStatus:
        """Let everything that is written by now be converted, whatever its age."""
        (known,) = self._topics((topic,))
        self._check_remote()
        with storage_errors(f"the conversion of {topic}"):
            await self._wishes.trigger_tiering(known.topic_id)
        return await self._status(topic)

    async def _status(self, topic: str) -> TieringStatus:
        found = await self.statuses((topic,))
        if not found:
            raise UnknownTopicOrPartition(f"Topic {topic} has no diskless log yet.")
        return found[0]

    # Checks

    def _rules(self, names: Iterable[str]) -> list[TieringRule]:
        settings = self._settings().tiering
        return [rule_of(topic, self._topic_config(topic.name), settings) for topic in self._topics(names)]

    def _topics(self, names: Iterable[str]) -> list[TopicImage]:
        """The diskless topics with these names, or all. Raises UnknownTopicOrPartition, InvalidRequest."""
        wanted = tuple(names)
        if not wanted:
            return list(self._diskless.topics())
        image = self._images.image
        missing = [name for name in wanted if name not in image.topics]
        if missing:
            raise UnknownTopicOrPartition(f"There is no topic {missing[0]}.")
        found = [image.topics[name] for name in wanted]
        diskless = {topic.topic_id for topic in self._diskless.topics()}
        for topic in found:
            if topic.topic_id not in diskless:
                raise InvalidRequest(
                    f"Topic {topic.name} is not diskless: only records of diskless topics are converted. Its closed "
                    "segments are copied to remote storage if remote.storage.enable is true."
                )
        return found

    def _check_remote(self) -> None:
        if not self._settings().tiers.remote_log_storage_system_enable:
            raise InvalidRequest(
                "There is nowhere to keep segments: remote.log.storage.system.enable is false on this broker. Set it "
                "to true on all brokers, with one rsm.config.url for all of them."
            )
