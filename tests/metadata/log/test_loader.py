"""The loader: every subscriber sees every change once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from strandline.metadata import EMPTY_IMAGE, MetadataDelta, MetadataImage, MetadataLoader, NewTopic
from strandline.metadata.delta import compared_in_steps
from strandline.metadata.log import loader
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import member, open_cluster


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
