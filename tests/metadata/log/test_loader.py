"""The loader: every subscriber sees every change once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from strandline.metadata import EMPTY_IMAGE, MetadataDelta, MetadataImage, MetadataLoader, NewTopic
from strandline.metadata.comparison import compared_in_steps
from strandline.metadata.log import loader
from strandline.metadata.log.store import PAGE, LogPage
from strandline.sql import StoreCorrupt, open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, member, open_cluster

Work: TypeAlias = Callable[[], Awaitable[None]]


class Recorder:
    """A subscriber that checks that deltas join without gaps."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.deltas: list[MetadataDelta] = []

    def __call__(self, delta: MetadataDelta, image: MetadataImage) -> None:
        assert delta.old is self.image or delta.old == self.image
        assert delta.new is image
        assert image.offset > self.image.offset
        self.image = image
        self.deltas.append(delta)


async def test_a_new_subscriber_first_gets_everything_there_is() -> None:
    async with open_cluster() as cluster:
        await cluster.create("a", [[1], [1]])
        recorder = Recorder()
        cluster.loader.subscribe(recorder)
        (delta,) = recorder.deltas
        assert set(delta.changed_topics) == {"a"}
        assert len(delta.changed_partitions) == 2
        assert set(delta.changed_brokers) == {1}


async def test_own_changes_are_published_before_the_call_returns() -> None:
    async with open_cluster() as cluster:
        recorder = Recorder()
        stop = cluster.loader.subscribe(recorder)
        async with cluster.loader.running():
            for number in range(20):
                await cluster.create(f"t{number}")
                assert recorder.image is cluster.image
                assert f"t{number}" in recorder.image.topics
        stop()
        await cluster.create("late")
        assert "late" not in recorder.image.topics


async def test_changes_made_at_the_same_time_arrive_in_order() -> None:
    async with open_cluster() as cluster:
        recorder = Recorder()
        cluster.loader.subscribe(recorder)
        async with cluster.loader.running():
            wishes = [[NewTopic(name=f"t{number}")] for number in range(30)]
            await asyncio.gather(*(cluster.controller.create_topics(wish) for wish in wishes))
        assert len(cluster.image.topics) == 30
        assert recorder.image is cluster.image


async def test_a_subscriber_that_fails_does_not_hide_the_change_from_others() -> None:
    def fail(delta: MetadataDelta, _image: MetadataImage) -> None:
        if "t" in delta.changed_topics:
            raise ValueError("cannot cope")

    async with open_cluster() as cluster:
        recorder = Recorder()
        cluster.loader.subscribe(fail)
        cluster.loader.subscribe(recorder)
        with pytest.raises(ExceptionGroup, match="Subscribers failed at metadata offset"):
            await cluster.create("t")
        assert "t" in recorder.image.topics


async def test_a_stopping_loader_ends_at_once() -> None:
    async with open_cluster() as cluster, asyncio.timeout(10), cluster.loader.running():
        pass


async def test_a_loader_starts_from_the_snapshot_and_the_records_after_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    async with open_cluster(url) as cluster:
        await cluster.create("a")
        await cluster.store.add_snapshot(cluster.image)
        await cluster.create("b")
        await cluster.store.add_snapshot(cluster.image)
        await cluster.create("c")
        expected = cluster.image
    async with open_store(url) as sql:
        other = member(sql, VirtualClock())
        recorder = Recorder()
        other.loader.subscribe(recorder)
        assert await other.loader.load() == expected
        assert recorder.image == expected
        assert len(recorder.deltas) == 2


async def test_nothing_is_published_for_an_empty_log() -> None:
    async with open_store("sqlite:///:memory:") as sql:
        cluster = member(sql, VirtualClock())
        recorder = Recorder()
        cluster.loader.subscribe(recorder)
        assert isinstance(cluster.loader, MetadataLoader)
        assert await cluster.loader.load() is EMPTY_IMAGE
        assert recorder.deltas == []


async def test_records_that_are_published_while_a_snapshot_is_compared_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_cluster() as cluster:
        other = member(cluster.sql, VirtualClock(), node_id=2)
        await other.loader.load()
        recorder = Recorder()
        other.loader.subscribe(recorder)
        base = other.image.offset
        await cluster.create("a")
        first = await cluster.store.read(base)
        for _ in range(2):  # the second snapshot deletes the records below the first
            await cluster.create(f"b{cluster.image.offset}")
            await cluster.store.add_snapshot(cluster.image)
        compared = 0

        def compare(old: MetadataImage, new: MetadataImage) -> Generator[None, None, MetadataDelta]:
            nonlocal compared
            compared += 1
            yield
            if compared == 1:
                other.loader.committed(base + 1, [record for _, record in first])
            return (yield from compared_in_steps(old, new))

        monkeypatch.setattr(loader, "compared_in_steps", compare)
        await other.loader.catch_up()
        assert compared == 2
        assert other.image == cluster.image
        assert recorder.image is other.image
        assert [sorted(delta.changed_topics) for delta in recorder.deltas[1:2]] == [["a"]]


def partitions_seen(loader: MetadataLoader) -> set[int]:
    """What subscribers learn of the number of partitions of topics: a set that grows."""
    seen: set[int] = set()

    def look(_: MetadataDelta, image: MetadataImage) -> None:
        seen.update(len(topic.partitions) for topic in image.topics.values())

    loader.subscribe(look)
    return seen


async def test_a_topic_with_more_partitions_than_a_page_has_records_is_never_seen_in_part() -> None:
    async with open_cluster() as cluster:
        other = member(cluster.sql, VirtualClock(), node_id=2)
        await other.loader.load()
        seen = partitions_seen(other.loader)
        await cluster.create("t", [[1]] * (2 * PAGE + 500))
        await other.loader.catch_up()
        assert seen == {2 * PAGE + 500}
        assert other.image == cluster.image


async def test_many_topics_that_arrive_together_are_each_seen_whole() -> None:
    async with open_cluster() as cluster:
        other = member(cluster.sql, VirtualClock(), node_id=2)
        await other.loader.load()
        seen = partitions_seen(other.loader)
        for number in range(PAGE // 4):
            await cluster.create(f"t{number}", [[1]] * 7, {"retention.ms": "1000"})
        await other.loader.catch_up()
        assert seen == {7}
        assert other.image == cluster.image


def read_short_pages(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *, before: Work) -> None:
    """Pages of four records, with some work before each."""
    read = cluster.store.read_page

    async def read_page(after: int, limit: int = 4) -> LogPage:
        await before()
        return await read(after, limit)

    monkeypatch.setattr(loader, "PAGE", 4)
    monkeypatch.setattr(cluster.store, "read_page", read_page)


async def test_a_loader_publishes_although_more_is_appended_with_each_page_that_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_cluster() as cluster:
        other = member(cluster.sql, VirtualClock(), node_id=2)
        await other.loader.load()
        recorder = Recorder()
        seen = partitions_seen(other.loader)
        other.loader.subscribe(recorder)
        created = 0

        async def append() -> None:
            nonlocal created
            created += 1
            await cluster.create(f"t{created}", [[1]] * 10)

        read_short_pages(other, monkeypatch, before=append)
        async with asyncio.timeout(10):
            await other.loader.catch_up()
            await other.loader.catch_up()
        assert created > 4
        assert len(recorder.deltas) == 3
        assert sorted(recorder.deltas[1].changed_topics) == ["t1"]
        assert seen == {10}


@asynccontextmanager
async def behind(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Cluster, Cluster, Recorder, list[Work]]]:
    """A cluster, and a member that is behind by one append. It calls what is put into the list between two pages."""
    async with open_cluster() as cluster:
        other = member(cluster.sql, VirtualClock(), node_id=2)
        await other.loader.load()
        recorder = Recorder()
        other.loader.subscribe(recorder)
        await cluster.create("t", [[1]] * 19)
        between: list[Work] = []
        pages = 0

        async def work() -> None:
            nonlocal pages
            pages += 1
            if pages == 2:
                await between.pop()()

        read_short_pages(other, monkeypatch, before=work)
        yield cluster, other, recorder, between


async def test_records_that_are_trimmed_between_two_pages_come_with_the_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def trim() -> None:
        for number in range(2):
            await cluster.create(f"later{number}")
            await cluster.store.add_snapshot(cluster.image)

    async with behind(monkeypatch) as (cluster, other, recorder, between):
        between.append(trim)
        await other.loader.catch_up()
        assert not between
        assert other.image == cluster.image
        assert recorder.image is other.image
        assert len(recorder.deltas) == 2, "the beginning, and the snapshot"


async def test_records_that_are_published_between_two_pages_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def publish() -> None:
        base = other.image.offset
        records = [record for _, record in await cluster.store.read(base)]
        await cluster.create("later")
        other.loader.committed(base + 1, records)

    async with behind(monkeypatch) as (cluster, other, recorder, between):
        between.append(publish)
        await other.loader.catch_up()
        assert not between
        assert [sorted(delta.changed_topics) for delta in recorder.deltas[1:]] == [["t"]]
        await other.loader.catch_up()
        assert other.image == cluster.image


async def test_a_log_whose_end_is_missing_is_not_published_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lose() -> None:
        async with cluster.sql.transaction() as tx:
            await tx.execute('DELETE FROM metadata_records WHERE "offset" > $1', other.image.offset + 4)

    async with behind(monkeypatch) as (cluster, other, recorder, between):
        between.append(lose)
        with pytest.raises(StoreCorrupt, match="The metadata log has no records between the offsets"):
            await other.loader.catch_up()
        assert len(recorder.deltas) == 1
        assert "t" not in other.image.topics
