"""Any order of writes, of replication that stands still and goes on, and of leaders: memory is what is committed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from strandline.coordinators.runtime import CoordinatorRuntime, CoordinatorState, InternalTopic, WriteResult
from strandline.errors import StrandlineError
from strandline.model import GROUP_METADATA_TOPIC
from strandline.records import Codec
from strandline.testing.clock import VirtualClock
from tests.coordinators.replicated_topic import ReplicatedTopic, open_replicated_topic
from tests.coordinators.runtime.dictionary import DictionaryShard
from tests.waiting import until

TOPIC = InternalTopic(name=GROUP_METADATA_TOPIC, partitions=1, codec=Codec.NONE, load_buffer_bytes=1000)
TIMEOUT_MS = 5_000
STEPS = ("put", "put", "put", "let go", "hold", "pass time", "lose", "fall back")


class Story:
    """A dictionary on a replicated log, and what its clients were told."""

    def __init__(self, topic: ReplicatedTopic, clock: VirtualClock) -> None:
        self.topic, self.clock = topic, clock
        self.runtime: CoordinatorRuntime[DictionaryShard] = CoordinatorRuntime(
            "key", topic.log, DictionaryShard, clock=clock, write_timeout_ms=TIMEOUT_MS
        )
        self.writes: dict[bytes, asyncio.Task[bool]] = {}

    async def _put(self, key: bytes) -> bool:
        try:
            shard = self.runtime.shard_of(0)
            result: WriteResult = await self.runtime.wait_written(lambda done: shard.put({key: key}, done))
        except StrandlineError:
            return False
        return result.error is None

    async def take(self, step: str) -> None:
        match step:
            case "put":
                key = b"%d" % len(self.writes)
                self.writes[key] = asyncio.create_task(self._put(key))
            case "let go":
                self.topic.let_go()
                await self.runtime.wait_loaded()
            case "hold":
                self.topic.hold()
            case "pass time":
                await self.clock.advance(TIMEOUT_MS / 1000)
            case "lose":
                self.topic.lose()
                self.topic.lead()
                await self.runtime.wait_loaded()
            case "fall back":
                self.topic.fall_back()
                (context,) = self.runtime.contexts
                loading = context.loading
                assert loading is not None
                await until(lambda: loading.done() or self.topic.waiting, "the log is read")
        await self.clock.settle()

    def check(self) -> None:
        committed = {record.key for record in self.topic.committed()}
        told = {key for key, write in self.writes.items() if write.done() and write.result()}
        assert told <= committed, "what a client was told is not lost"
        (context,) = self.runtime.contexts
        if context.state is CoordinatorState.ACTIVE:
            assert context.shard.values.keys() == committed


@given(st.lists(st.sampled_from(STEPS), min_size=6, max_size=20))
@example(["hold", "put", "fall back", "put"])
@example(["hold", "put", "put", "pass time", "put", "let go", "put"])
@example(["hold", "put", "lose", "put"])
async def test_memory_is_what_is_committed(steps: list[str]) -> None:
    clock = VirtualClock(1_000_000)
    with tempfile.TemporaryDirectory() as directory, open_replicated_topic(Path(directory), TOPIC, clock) as topic:
        story = Story(topic, clock)
        async with story.runtime.running():
            topic.replicas.add_listener(topic.name, story.runtime)
            for step in ("let go", *steps, "let go"):
                await story.take(step)
                story.check()
            await asyncio.gather(*story.writes.values())
