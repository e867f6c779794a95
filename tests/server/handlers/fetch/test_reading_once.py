"""A Fetch reads each place once: what is held while other reads are under way, for how long, and in whose memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from strandline.hybrid.layout import Tier
from strandline.hybrid.partition import ServedPartition
from strandline.server.handlers.fetch.states import PollState
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import PartitionData
from strandline.wire.registry import decode_response
from tests.server.handlers.fetch.polling import MEMORY, RECORD, VERSION, PollWorld, PromptPart

pytestmark = pytest.mark.plain


@pytest_asyncio.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[PollWorld]:
    """With one record in a file, or in memory, and one that has to be brought."""
    opened = PollWorld(PromptPart("here", getattr(request, "param", Tier.LOCAL)))
    opened.here.records = opened.there.records = 1
    yield opened
    await opened.close()


in_memory = pytest.mark.parametrize("world", [Tier.DISKLESS], indirect=True, ids=["in memory"])


def answered(world: PollWorld) -> dict[str, PartitionData]:
    """The answer, by topic; the bytes of a record are zeros."""
    [exchange] = world.connection.answered_exchanges
    frame = b""
    for part in exchange.parts or ():
        frame += part if isinstance(part, bytes | bytearray) else bytes(part.length)
    response = decode_response(ApiKey.FETCH, VERSION, memoryview(frame)[4:])[1]
    return {topic.topic: topic.partitions[0] for topic in response.responses}


def lengths(world: PollWorld) -> dict[str, int]:
    return {name: len(row.records or b"") for name, row in answered(world).items()}


async def test_what_was_read_at_once_is_not_read_again_when_the_others_are_there(world: PollWorld) -> None:
    poll = world.ask()
    await world.turns()
    assert poll.state is PollState.READING
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert (world.here.reads, world.there.reads) == (1, 1)


async def test_nor_when_the_others_are_late(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    world.poll.expired()
    assert lengths(world) == {"here": RECORD, "there": 0}
    assert world.here.reads == 1


async def test_nor_if_what_there_is_does_not_suffice_and_reads_are_waited_for_beyond_the_time(world: PollWorld) -> None:
    poll = world.ask(min_bytes=10_000)
    await world.turns()
    poll.expired()
    assert poll.state is PollState.OVERDUE
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert world.here.reads == 1


async def test_records_that_came_meanwhile_are_for_the_next_request(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    world.here.add_record()
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert answered(world)["here"].high_watermark == 1, "the answer is as old as its records: the session will ask on"


async def test_a_place_without_records_is_read_again_if_there_are_some_now(world: PollWorld) -> None:
    world.here.records = 0
    world.ask()
    await world.turns()
    world.here.add_record()
    world.poll.expired()
    assert lengths(world) == {"here": RECORD, "there": 0}


async def test_a_place_without_records_is_not_read_again_if_nothing_has_moved(world: PollWorld) -> None:
    world.here.records = 0
    world.ask()
    await world.turns()
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": 0, "there": RECORD}
    assert world.here.reads == 1


async def test_another_leader_epoch_means_another_read(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    world.leader_moves()
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert (world.here.reads, world.there.reads) == (2, 1)


async def test_so_does_another_partition_of_that_name(world: PollWorld) -> None:
    """As after a switch, or if the topic was deleted and created again."""
    world.ask()
    await world.turns()
    other = PromptPart("here")
    world.partitions.add(ServedPartition(cast(Any, other)))
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": 0, "there": RECORD}
    assert (world.here.reads, other.reads, world.there.reads) == (1, 1, 1)


async def test_so_does_a_log_start_beyond_the_offset(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    world.here.log_start_offset = 1
    world.there.bring()
    await world.turns()
    assert (world.here.reads, world.there.reads) == (2, 1)


async def test_so_does_another_request_of_the_session(world: PollWorld) -> None:
    """From another connection: the client has given this one up."""
    world.ask()
    await world.turns()
    place = world.places[0]
    place.entry = place.entry._replace(fetch_offset=1)
    world.there.bring()
    await world.turns()
    assert (world.here.reads, world.there.reads) == (2, 1)


async def test_a_partition_that_is_gone_is_told_instead_of_what_was_read(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    world.partitions.remove(cast(Any, world.here))
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": 0, "there": RECORD}
    assert answered(world)["here"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_slow_records_of_another_epoch_are_read_again_while_the_others_are_held(world: PollWorld) -> None:
    poll = world.ask()
    await world.turns()
    world.there.leader_epoch += 1
    world.there.bring()
    await world.turns()
    assert poll.state is PollState.READING
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert (world.here.reads, world.there.reads) == (1, 2)


async def test_together_they_have_no_more_than_max_bytes(world: PollWorld) -> None:
    world.here.records, world.there.records = 3, 9
    world.ask(max_bytes=10 * RECORD)
    await world.turns()
    assert world.there.granted == [7 * RECORD]
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": 3 * RECORD, "there": 7 * RECORD}


async def test_what_is_read_again_gets_what_the_others_have_left(world: PollWorld) -> None:
    world.here.records, world.there.records = 0, 7
    world.ask(max_bytes=10 * RECORD)
    await world.turns()
    world.here.records = 9
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": 3 * RECORD, "there": 7 * RECORD}


# Waiting for more than there is


async def test_a_request_that_waits_reads_only_what_has_news_again(world: PollWorld) -> None:
    poll = world.ask(min_bytes=1_000)
    await world.turns()
    world.there.bring()
    await world.turns()
    assert poll.state is PollState.WAITING
    world.here.add_record()
    await world.turns()
    assert poll.state is PollState.WAITING
    assert (world.here.reads, world.there.reads) == (2, 1)
    world.there.add_record()
    await world.turns()
    assert (world.here.reads, world.there.reads) == (3, 2)
    world.there.bring()
    await world.turns()
    poll.expired()
    assert lengths(world) == {"here": 2 * RECORD, "there": 2 * RECORD}


async def test_a_request_that_waits_keeps_no_file(world: PollWorld) -> None:
    """It may wait for days, and its topic be deleted."""
    poll = world.ask(min_bytes=1_000)
    await world.turns()
    world.there.bring()
    await world.turns()
    assert poll.state is PollState.WAITING
    assert [place.entry.topic for place in poll._places.held.answers] == ["there"]


async def test_news_that_come_while_reading_are_looked_at_before_the_next_wait(world: PollWorld) -> None:
    world.there.records = 0
    poll = world.ask(min_bytes=3 * RECORD)
    await world.turns()
    world.here.records += 1
    world.here.add_record()
    assert (poll.state, world.here.reads) == (PollState.READING, 1), "one after the other"
    world.there.bring()
    await world.turns()
    assert (poll.state, world.here.reads) == (PollState.READING, 2), "it has not waited"
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": 3 * RECORD, "there": 0}


async def test_what_is_read_when_the_time_is_over_is_held_as_well(world: PollWorld) -> None:
    world.here.records = 0
    poll = world.ask(min_bytes=10_000)
    await world.turns()
    world.here.add_record()
    poll.expired()
    assert (poll.state, world.here.reads) == (PollState.OVERDUE, 2)
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert world.here.reads == 2


# Memory


@in_memory
async def test_records_in_memory_count_while_they_are_held(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    [granted] = world.there.granted
    assert world.memory.held == granted + RECORD
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}
    assert world.here.reads == 1
    assert world.memory.held == 0


async def test_records_in_files_do_not(world: PollWorld) -> None:
    world.ask()
    await world.turns()
    assert [world.memory.held] == world.there.granted


@in_memory
async def test_a_request_takes_no_more_than_its_share_for_both(world: PollWorld) -> None:
    world.here.records = world.there.records = 9_000
    world.memory.take(MEMORY // 2)
    world.ask(max_bytes=1 << 20)
    await world.turns()
    at_once, left = MEMORY // 8, MEMORY // 2 - MEMORY // 8
    assert world.there.granted == [left // 4], "a quarter of what is left beside the others, and then of the rest"
    assert world.memory.held - MEMORY // 2 == at_once + left // 4
    world.there.bring()
    await world.turns()
    assert world.memory.held == MEMORY // 2


@in_memory
async def test_without_memory_nothing_is_held(world: PollWorld) -> None:
    world.memory.take(MEMORY)
    poll = world.ask()
    await world.turns()
    assert (poll.state, poll._places.held.answers) == (PollState.WAITING, {})
    world.memory.give_back(MEMORY)
    await world.turns()
    assert poll.state is PollState.READING
    world.there.bring()
    await world.turns()
    assert lengths(world) == {"here": RECORD, "there": RECORD}


@in_memory
async def test_without_memory_the_answer_has_no_records_when_the_time_is_over(world: PollWorld) -> None:
    world.memory.take(MEMORY)
    poll = world.ask()
    await world.turns()
    poll.expired()
    assert lengths(world) == {"here": 0, "there": 0}
    assert poll not in world.memory._waiting


async def test_the_memory_of_a_client_that_has_left_counts_until_its_reads_are_through(world: PollWorld) -> None:
    poll = world.ask()
    await world.turns()
    world.connection.close(None)
    assert poll.state is PollState.ABANDONED
    assert not poll._places.held.answers
    assert world.memory.held > 0
    world.there.bring()
    await world.turns()
    assert world.memory.held == 0


async def test_an_error_that_may_pass_is_read_again_and_the_others_are_not_held_for_it(world: PollWorld) -> None:
    poll = world.ask(min_bytes=1_000)
    await world.turns()
    world.store_is_away()
    await world.turns()
    assert (poll.state, world.there.reads) == (PollState.WAITING, 1)
    poll.notify()
    await world.turns()
    assert (poll.state, world.there.reads) == (PollState.READING, 2)
    poll.expired()
    assert poll.state is PollState.OVERDUE
    poll.expired()
    assert answered(world)["there"].error_code == ErrorCode.KAFKA_STORAGE_ERROR, "why it did not come in time"
    assert lengths(world)["here"] == RECORD


async def test_an_error_that_has_passed_is_not_told(world: PollWorld) -> None:
    poll = world.ask(min_bytes=1_000)
    await world.turns()
    world.store_is_away()
    await world.turns()
    poll.notify()
    await world.turns()
    world.there.bring()
    await world.turns()
    world.there.add_record()
    await world.turns()
    assert (poll.state, world.there.reads) == (PollState.READING, 3)
    for _ in range(2):
        poll.expired()
    assert answered(world)["there"].error_code == ErrorCode.NONE
