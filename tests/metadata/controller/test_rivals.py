"""Several controllers on one PostgreSQL: one leads at a time, and one that was paused cannot write any more."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from strandline.clock import Clock, SystemClock
from strandline.errors import NotController, RequestTimedOut
from strandline.metadata import LeaseTiming, NewTopic, TopicImage
from strandline.metadata.log.loader import POLL_SECONDS
from strandline.metadata.records import ClusterRecord
from strandline.metadata.requests import Plan
from strandline.sql import SqlStore, StoreInUse, open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, member
from tests.postgres import Postgres, postgres, postgres_url
from tests.waiting import until

__all__ = ["postgres", "postgres_url"]

SHORT = LeaseTiming(lease=0.4, renew=0.1)
CLOCK = SystemClock()


@asynccontextmanager
async def rival(url: str, node_id: int, *, clock: Clock = CLOCK, timing: LeaseTiming = SHORT) -> AsyncIterator[Cluster]:
    """A broker's metadata on its own connections. Nothing runs by itself."""
    async with open_store(url) as sql:
        cluster = member(sql, clock, node_id=node_id, timing=timing)
        await cluster.loader.load()
        yield cluster


async def activate(cluster: Cluster) -> None:
    async with asyncio.timeout(20):
        while not await cluster.controller.activate():
            await CLOCK.sleep(0.02)


async def test_only_one_is_active_and_the_other_says_who(postgres_url: str) -> None:
    async with rival(postgres_url, 1, timing=LeaseTiming()) as one, rival(postgres_url, 2) as two:
        assert await one.controller.activate()
        assert not await two.controller.activate()
        await two.loader.catch_up()
        with pytest.raises(NotController, match="Broker 2 is not the active controller; 1 is"):
            await two.controller.create_topics([NewTopic(name="t")])


async def test_a_paused_controller_loses_the_lease_and_its_late_writes_are_refused(postgres_url: str) -> None:
    # The time of one stands still: it renews nothing, and does not know. Two sees the lease run out.
    async with rival(postgres_url, 1, clock=VirtualClock()) as one, rival(postgres_url, 2) as two:
        assert await one.controller.activate()
        await one.start_broker(1)
        await activate(two)
        await two.create("t", [[1]])
        before = await two.store.load()
        assert one.controller.is_active, "it does not know yet"
        with pytest.raises(NotController):
            await one.controller.create_topics([NewTopic(name="zombie")])
        assert not one.controller.is_active
        assert await two.store.load() == before == two.image
        assert two.image.controller_id == 2
        await one.controller.upkeep.step()  # looks at the lease, and leaves it alone
        assert not one.controller.is_active


async def test_a_controller_whose_lease_is_over_by_its_own_clock_asks_no_database_to_step_down(
    postgres_url: str,
) -> None:
    clock = VirtualClock()
    async with rival(postgres_url, 1, clock=clock) as one:
        assert await one.controller.activate()
        await one.start_broker(1)
        clock.move(SHORT.lease - 0.01)
        assert one.controller.is_active
        clock.move(0.01)
        assert not one.controller.is_active
        with pytest.raises(NotController):
            await one.beat(1)
        await one.controller.upkeep.step()
        assert one.controller.status().epoch == 2, "nobody else wanted it"


async def test_renewing_keeps_the_lease(postgres_url: str) -> None:
    clock = VirtualClock()
    async with rival(postgres_url, 1, clock=clock, timing=LeaseTiming()) as one, rival(postgres_url, 2) as two:
        assert await one.controller.activate()
        async with one.sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET expires_at_ms = 1 WHERE id = 1")
        await one.controller.leadership.keep()
        assert (await one.store.lease()).has_expired, "it is not time to renew yet"
        clock.move(LeaseTiming().renew)
        await one.controller.leadership.keep()
        assert not (await one.store.lease()).has_expired
        assert not await two.controller.activate()


async def test_a_lease_given_back_is_taken_at_once(postgres_url: str) -> None:
    async with rival(postgres_url, 1, timing=LeaseTiming()) as one, rival(postgres_url, 2) as two:
        async with one.controller.running():
            assert not await two.controller.activate()
        assert await two.controller.activate()
        assert two.image.controller_epoch == 2


async def test_a_broker_takes_the_lease_of_its_own_last_life_at_once(postgres_url: str) -> None:
    forever = LeaseTiming(lease=3600.0)
    async with rival(postgres_url, 1, timing=forever) as first_life:
        assert await first_life.controller.activate()
    async with rival(postgres_url, 2, timing=forever) as other:
        assert not await other.controller.activate()
    async with rival(postgres_url, 1, timing=forever) as second_life:
        assert await second_life.controller.activate()
        assert second_life.image.controller_epoch == 2


async def test_two_processes_with_one_node_id_are_kept_apart(postgres_url: str) -> None:
    clock = VirtualClock()
    async with (
        rival(postgres_url, 1, timing=LeaseTiming()) as one,
        rival(postgres_url, 1, clock=clock) as double,
        one.controller.running(),
    ):

        async def start_double() -> None:
            async with double.controller.running():
                pass

        starting = asyncio.create_task(start_double())
        while not starting.done():
            await clock.advance(0.5)
            await CLOCK.sleep(0.01)
        with pytest.raises(StoreInUse, match=r"Another broker with node\.id 1 is connected"):
            await starting
        assert one.controller.is_active


_WRITER = """
import asyncio, sys
from strandline.clock import SystemClock
from strandline.errors import NotController
from strandline.metadata import LeaseTiming, NewTopic
from strandline.sql import open_store
from tests.metadata.cluster import member

async def main():
    url, is_inside = sys.argv[1], sys.argv[2] == "inside"
    async with open_store(url, deadline=1.0) as sql:
        cluster = member(sql, SystemClock(), node_id=1, timing=LeaseTiming(lease=1.0, renew=0.2))
        await cluster.loader.load()
        assert await cluster.controller.activate()
        await cluster.start_broker(1)
        if is_inside:
            async with sql.transaction() as tx:
                await tx.fetch("SELECT * FROM controller_lease {for_update}")
                print("ready", flush=True)
                input()
            print("unexpected", flush=True)
            return
        print("ready", flush=True)
        await asyncio.to_thread(input)
        try:
            await cluster.controller.create_topics([NewTopic(name="zombie")])
        except NotController:
            print("refused", flush=True)
        else:
            print("written", flush=True)

asyncio.run(main())
"""


async def start_writer(url: str, mode: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITER, url, mode, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert writer.stdout is not None
    assert await writer.stdout.readline() == b"ready\n"
    return writer


async def test_a_stopped_process_wakes_up_as_a_zombie_and_is_refused(postgres_url: str) -> None:
    writer = await start_writer(postgres_url, "outside")
    writer.send_signal(signal.SIGSTOP)
    async with rival(postgres_url, 2) as two:
        await activate(two)
        (topic,) = await two.controller.create_topics([NewTopic(name="real", assignments={0: [1]})])
        assert isinstance(topic, TopicImage)
        writer.send_signal(signal.SIGCONT)
        output, _ = await asyncio.wait_for(writer.communicate(b"\n"), 20)
        assert output == b"refused\n"
        assert set((await two.store.load()).topics) == {"real"}


async def test_a_process_stopped_inside_a_transaction_does_not_stop_the_cluster(postgres_url: str) -> None:
    writer = await start_writer(postgres_url, "inside")
    writer.send_signal(signal.SIGSTOP)
    try:
        async with rival(postgres_url, 2) as two:
            await activate(two)
            await two.start_broker(2)
            await two.create("t", [[2]])
    finally:
        writer.kill()
        writer.send_signal(signal.SIGCONT)
        await writer.communicate()


async def test_others_follow_by_notification(postgres_url: str) -> None:
    # Its clock stands still, so nothing can come by polling.
    async with rival(postgres_url, 1) as one, rival(postgres_url, 2, clock=VirtualClock()) as two, two.loader.running():
        assert await one.controller.activate()
        await one.start_broker(1)
        await one.create("t", [[1]])
        await until(lambda: "t" in two.image.topics, "the topic")
        assert two.image == one.image


async def write_without_telling(sql: SqlStore, cluster_id: str) -> None:
    """A write without a notification."""
    async with sql.transaction() as tx:
        row = await tx.fetch_one("SELECT next_offset FROM controller_lease WHERE id = 1 {for_update}")
        assert row is not None
        await tx.execute(
            'INSERT INTO metadata_records ("offset", controller_epoch, type, payload) VALUES ($1, 1, $2, $3)',
            row[0],
            "cluster",
            json.dumps({"id": cluster_id}),
        )
        await tx.execute("UPDATE controller_lease SET next_offset = $1 WHERE id = 1", row[0] + 1)


async def test_a_lost_notification_is_made_up_for_by_polling(postgres_url: str) -> None:
    clock = VirtualClock()
    async with rival(postgres_url, 1) as one, rival(postgres_url, 2, clock=clock) as two, two.loader.running():
        assert await one.controller.activate()
        await until(lambda: two.image.offset == one.image.offset, "the first records")
        await write_without_telling(one.sql, "quiet")
        await one.loader.catch_up()
        assert one.image.cluster_id == "quiet"
        assert two.image.cluster_id != "quiet"
        clock.move(POLL_SECONDS)
        await until(lambda: two.image.cluster_id == "quiet", "the poll")


async def test_a_restart_of_the_database_interrupts_and_then_everything_goes_on(
    postgres: Postgres, postgres_url: str
) -> None:
    async with (
        rival(postgres_url, 1, timing=LeaseTiming()) as one,
        rival(postgres_url, 2) as two,
        one.loader.running(),
        two.loader.running(),
        one.controller.running(),
    ):
        await one.start_broker(1)
        await one.create("before", [[1]])
        await postgres.stop()
        try:
            with pytest.raises(RequestTimedOut, match="metadata database"):
                await one.controller.create_topics([NewTopic(name="during")])
            assert (await one.beat(1)).is_caught_up, "heartbeats need no database"
        finally:
            await postgres.start()
        async with asyncio.timeout(30):
            while "after" not in one.image.topics:
                try:
                    await one.controller.create_topics([NewTopic(name="after", assignments={0: [1]})])
                except RequestTimedOut:
                    await CLOCK.sleep(0.05)
        assert set(one.image.topics) == {"before", "after"}
        await until(lambda: set(two.image.topics) == {"before", "after"}, "the follower")
        assert await one.store.load() == one.image


async def test_a_write_whose_answer_was_lost_is_found_again(postgres_url: str) -> None:
    """The commit took effect, but its answer was lost: the next change is decided on the new records."""
    async with rival(postgres_url, 1, timing=LeaseTiming()) as one:
        assert await one.controller.activate()
        await one.start_broker(1)
        await write_without_telling(one.sql, "from a lost answer")
        assert one.image.cluster_id != "from a lost answer"
        await one.create("t", [[1]])
        assert one.image.cluster_id == "from a lost answer"
        assert await one.store.load() == one.image


async def test_snapshots_do_not_wait_for_writers(postgres_url: str) -> None:
    """Clean-up under the lock that commits need would add to the latency of every request."""
    async with rival(postgres_url, 1) as one:
        assert await one.controller.activate()
        async with one.sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET next_offset = next_offset WHERE id = 1")
            await asyncio.wait_for(one.store.add_snapshot(one.image), 5)


async def test_a_follower_that_is_far_behind_jumps_to_the_snapshot(postgres_url: str) -> None:
    async with rival(postgres_url, 1, timing=LeaseTiming()) as one, rival(postgres_url, 2) as two:
        assert await one.controller.activate()
        await one.start_broker(1)
        await one.create("gone", [[1]])
        await two.loader.catch_up()
        deltas: list[tuple[set[str], set[str]]] = []
        two.loader.subscribe(
            lambda delta, _: deltas.append(
                (set(delta.changed_topics), {topic.name for topic in delta.deleted_topics.values()})
            )
        )
        await one.controller.delete_topics(["gone"])
        await one.create("new", [[1], [1]])
        for _ in range(2):
            await one.store.add_snapshot(one.image)
            await one.controller.write(lambda _: Plan((ClusterRecord(cluster_id="noise"),), None))
        await one.store.add_snapshot(one.image)
        assert (await one.store.read(-1))[0][0] > two.image.offset + 1, "what it needs is trimmed"
        await two.loader.catch_up()
        assert two.image == one.image
        assert deltas[0] == ({"gone"}, set())
        assert deltas[1] == ({"new"}, {"gone"})


async def test_whoever_may_not_take_the_lease_does_not_lock_it(postgres_url: str) -> None:
    """Brokers ask for it every second, and one that is suspended meanwhile would hold up the controller."""
    timing = LeaseTiming(lease=600.0, renew=1.0)
    async with rival(postgres_url, 1, timing=timing) as one, rival(postgres_url, 2) as other:
        assert await one.controller.activate()
        async with one.store.sql.transaction() as holder:
            await holder.execute("UPDATE controller_lease SET epoch = epoch")
            assert not await other.controller.activate()
