"""Drivers, executors and brokers die at each step of a conversion; the next run finishes it.

Nothing is lost, doubled or reordered, no row and no object is left over, and no segment is stuck on its way.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka.admin import AdminClient

from strandline.admin.commands.main import run
from strandline.clock import SystemChance
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.pipeline.client import TieringClient
from strandline.pipeline.driver.jobs import SparkJobs, Task
from strandline.pipeline.driver.rounds import follow
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import alter, create, earliest, numbered, produce, read, remote_logs, values
from tests.crash.converting import (
    DISKLESS,
    SETTINGS,
    SIGKILLED,
    Logs,
    findings,
    is_converted,
    read_logs,
    rows_left,
    running_driver,
    unreferenced,
    wait_tidy,
)
from tests.pipeline.plain_driver import PlainJobs, make_world, prepare_tasks
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

DRIVER_POINTS = (
    "tiering.split.before_write",
    "tiering.split.after_write",
    "tiering.split.after_write:2",
    "tiering.driver.before_record",
    "tiering.driver.after_record",
    "tiering.driver.before_begin",
    "tiering.driver.before_begin:2",
    "tiering.merge.before_upload",
    "tiering.merge.after_upload",
    "tiering.merge.after_upload:2",
    "tiering.driver.before_commit",
    "tiering.driver.after_commit",
)
# A batch is a segment, and of the three WAL objects of a topic two are split together.
SMALL = {"inkless.tiering.max.segment.bytes": "15000", "inkless.tiering.max.batches.per.run": "2"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("crashes") / "data", SETTINGS | SMALL) as running:
        yield running


def fill(broker: BrokerProcess, topic: str, *, first: int = 0) -> None:
    produce(broker, topic, numbered(first, 30))


def new_topic(broker: BrokerProcess, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, name, DISKLESS)
    fill(broker, name)
    return name


def finish(broker: BrokerProcess, before: Logs) -> None:
    """Runs until everything is converted; then nothing is wrong anywhere."""
    finish_runs(broker, before)
    wait_all_tidy(broker)


def finish_runs(broker: BrokerProcess, before: Logs) -> None:
    """Runs until everything is converted."""
    topics = tuple({topic: None for topic, _ in before})

    def is_finished() -> bool:
        with running_driver(broker.bootstrap, *topics) as driver:
            assert driver.wait() == 0, driver.said
        return is_converted(broker.bootstrap, *topics)

    wait_until(is_finished, within=60, step=0.5, what="the conversion to finish")
    assert read_logs(broker.bootstrap, before) == before


def wait_all_tidy(broker: BrokerProcess) -> None:
    """The broker never searches for orphans: whatever was given up is tidied up for that reason."""
    wait_tidy(broker)
    # The rows of a file go after its object: until then there may be a claim of it.
    wait_until(lambda: rows_left(broker) == {}, what="no rows of what was converted")
    assert findings(broker) == []


def test_a_driver_or_its_executors_die_at_each_step(broker: BrokerProcess) -> None:
    topics = [new_topic(broker, f"driver-{number}") for number in range(len(DRIVER_POINTS))]
    before = read_logs(broker.bootstrap, [(topic, 0) for topic in topics])

    def die(topic: str, point: str) -> None:
        with running_driver(broker.bootstrap, topic, crash_at=point) as driver:
            assert driver.wait() == SIGKILLED, driver.said

    with ThreadPoolExecutor(2) as pool:
        for dying in [pool.submit(die, topic, point) for topic, point in zip(topics, DRIVER_POINTS, strict=True)]:
            dying.result()
    assert not is_converted(broker.bootstrap, *topics)
    finish(broker, before)


BROKER_POINTS = (
    "controlplane.tiering.before_record_commit:2",
    "tiering.begin.before_started:2",
    "tiering.begin.after_started",
    "tiering.commit.before_finished:2",
    "tiering.commit.after_finished",
    "controlplane.tiering.before_segment_commit:2",
    "controlplane.tiering.before_rows_go",
    "tiering.commit.after_commit:2",
)


def test_the_broker_dies_at_each_step_and_the_run_goes_on_when_it_is_back(broker: BrokerProcess) -> None:
    """The driver lives, and asks again until it is answered."""
    before: Logs = {}
    for number, point in enumerate(BROKER_POINTS):
        broker.stop()
        broker.environment = {ENVIRONMENT_VARIABLE: point}
        broker.start()
        topic = new_topic(broker, f"broker-{number}")
        before |= read_logs(broker.bootstrap, [(topic, 0)])
        with running_driver(broker.bootstrap, topic) as driver:
            assert broker.wait() == SIGKILLED, point
            broker.environment = {}
            broker.start()
            assert driver.wait() == 0, f"{point}: {driver.said}"
        assert is_converted(broker.bootstrap, topic), f"{point}: {driver.said}"
    finish(broker, before)


class BrokerAwayJobs(PlainJobs):
    """While the tasks of the first merge run, the broker dies."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    async def run(self, stage: str, description: str, tasks: Sequence[str], work: Task) -> list[str]:
        found = await super().run(stage, description, tasks, work)
        if stage == "merge" and self._broker.is_running:
            await asyncio.to_thread(self._broker.kill)
        return found


def test_a_driver_that_follows_lost_the_broker_and_goes_on(broker: BrokerProcess) -> None:
    """What it had begun must neither be renewed for ever nor be in the way of its next pass."""
    topic = new_topic(broker, "followed")
    before = read_logs(broker.bootstrap, [(topic, 0)])
    prepare_tasks()

    async def follow_until_converted() -> None:
        with TieringClient(broker.bootstrap, timeout_s=2) as client:
            client.trigger(topic)
            world = make_world(client, [topic])
            world.jobs = cast(SparkJobs, BrokerAwayJobs(broker))
            following = asyncio.create_task(follow(world, SystemChance()))
            assert await asyncio.to_thread(broker.wait) == SIGKILLED
            world.jobs = cast(SparkJobs, PlainJobs())
            # Until it has waited long enough for the broker.
            await asyncio.to_thread(wait_until, world.troubles.sentences, what="the driver to miss the broker")
            await asyncio.to_thread(broker.start)
            while not await asyncio.to_thread(is_converted, broker.bootstrap, topic):
                assert not following.done(), following.exception()
                await world.clock.sleep(0.1)
            following.cancel()
            await asyncio.wait([following])

    asyncio.run(asyncio.wait_for(follow_until_converted(), 120))
    finish(broker, before)


@pytest.mark.long
def test_the_broker_dies_while_it_gives_up_a_segment_and_while_segments_expire(broker: BrokerProcess) -> None:
    topic = new_topic(broker, "given-up")
    before = read_logs(broker.bootstrap, [(topic, 0)])
    with running_driver(broker.bootstrap, topic, crash_at="tiering.merge.after_upload") as driver:
        assert driver.wait() == SIGKILLED
    broker.stop()
    broker.environment = {ENVIRONMENT_VARIABLE: "tiering.abort.after_delete_started"}
    broker.start()
    assert broker.wait() == SIGKILLED
    broker.environment = {ENVIRONMENT_VARIABLE: "tiering.expire.after_log_start"}
    broker.start()
    finish_runs(broker, before)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    alter(admin, topic, {"retention.bytes": "12000"})
    assert broker.wait() == SIGKILLED
    broker.environment = {}
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert earliest(admin, topic) == 10
    assert values(read(broker, topic, 20, offset=10)) == [*range(10, 30)]
    wait_until(lambda: len(remote_logs(broker, topic)) == 2, within=30, what="the expired segments to go")
    wait_all_tidy(broker)


def test_an_executor_that_was_suspended_uploads_after_its_segment_was_given_up(broker: BrokerProcess) -> None:
    """Another run has made the segment meanwhile. What comes late is not read, and fsck finds it."""
    topic = new_topic(broker, "suspended")
    before = read_logs(broker.bootstrap, [(topic, 0)])
    with running_driver(broker.bootstrap, topic, crash_at="stop@tiering.merge.before_upload") as driver:
        wait_until(lambda: is_suspended(driver.pid), within=30, what="the driver to stop")
        finish_runs(broker, before)
        os.kill(driver.pid, signal.SIGCONT)
        assert driver.wait() in (0, 1), driver.said
    assert read_logs(broker.bootstrap, before) == before
    assert {finding["kind"] for finding in findings(broker)} <= {"orphan"}
    broker.restart()
    assert read_logs(broker.bootstrap, before) == before
    arguments = ["fsck", "--repair", "--grace", "0", "--tier", "remote", "--data-dir", str(broker.data_dir)]
    run([*arguments, "--bootstrap", broker.bootstrap])
    wait_all_tidy(broker)
    assert read_logs(broker.bootstrap, before) == before


def test_split_files_that_were_taken_with_the_claims_are_written_again_by_the_same_run(broker: BrokerProcess) -> None:
    """A driver that was away for longer than its claims lasted ends when its topic is converted, not before."""
    topic = new_topic(broker, "away")
    before = read_logs(broker.bootstrap, [(topic, 0)])
    with running_driver(broker.bootstrap, topic, crash_at="stop@tiering.driver.before_record") as driver:
        wait_until(lambda: is_suspended(driver.pid), within=30, what="the driver to stop")
        assert unreferenced(broker) != []
        wait_until(lambda: not unreferenced(broker), within=30, what="its split files to be taken")
        os.kill(driver.pid, signal.SIGCONT)
        assert driver.wait() == 0, driver.said
        assert is_converted(broker.bootstrap, topic), driver.said
    finish(broker, before)


def is_suspended(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
