"""Writing: order, gathering, fences, and writes that fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.runtime import CoordinatorPartitionWriter, TransactionEnd, WriteResult, client_error
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
    StrandlineError,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from strandline.model import ProducerAndEpoch
from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.dictionary import Dictionary
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

PATIENCE_MS = 5_000


class Writes:
    """A writer, and the results of its writes in the order in which they came."""

    def __init__(self, clock: VirtualClock) -> None:
        self.log, self.clock = MemoryCoordinatorLog(), clock
        self.results: list[tuple[str, WriteResult]] = []
        self.writer = CoordinatorPartitionWriter("test", 0, 1, log=self.log, clock=clock, patience_ms=PATIENCE_MS)

    def write(self, name: str, *keys: str, size: int = 1) -> None:
        records = [(key.encode(), b"v" * size) for key in keys]
        self.writer.write(records, lambda result: self.results.append((name, result)))

    async def end(self) -> None:
        await self.clock.settle()

    def appended(self) -> list[list[bytes]]:
        return [[record.key for record in records] for _, records in self.log.appends]


async def test_writes_in_one_turn_become_one_append_in_their_order(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.write("one", "a", "b")
    writes.write("two", "c")
    assert writes.results == []  # never before the caller has returned
    await writes.end()
    assert writes.appended() == [[b"a", b"b", b"c"]]
    assert writes.results == [("one", WriteResult(None, 0)), ("two", WriteResult(None, 2))]


async def test_a_write_at_once_is_in_the_log_when_it_returns(clock: VirtualClock) -> None:
    writes = Writes(clock)
    assert writes.writer.write_now([(b"a", b"1"), (b"b", None)]) == WriteResult(None, 0)
    assert writes.writer.write_now([(b"c", b"1")]) == WriteResult(None, 2)
    assert writes.appended() == [[b"a", b"b"], [b"c"]]


async def test_nothing_is_written_at_once_before_what_was_written_earlier(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.write("one", "a")
    assert writes.writer.write_now([(b"b", b"1")]) is None
    await writes.end()
    assert writes.writer.write_now([(b"c", b"1")]) == WriteResult(None, 1)
    writes.write("fence")
    assert writes.writer.write_now([(b"d", b"1")]) is None
    await writes.end()
    assert writes.appended() == [[b"a"], [b"c"]]


async def test_nothing_is_written_at_once_while_results_are_told(clock: VirtualClock) -> None:
    """A shard may write when it hears of a result: that comes behind what is still in the queue."""
    writes = Writes(clock)
    found: list[WriteResult | None] = []
    writes.writer.write([(b"a", b"1")], lambda _: found.append(writes.writer.write_now([(b"c", b"1")])))
    writes.write("two", "b")
    await writes.end()
    assert found == [None]
    assert writes.appended() == [[b"a", b"b"]]


@pytest.mark.parametrize(
    "error", [NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch, UnknownTopicOrPartition, KafkaStorageError]
)
async def test_a_refusal_is_reported_by_the_write_that_follows(
    clock: VirtualClock, error: type[StrandlineError]
) -> None:
    writes = Writes(clock)
    writes.log.fail_with = writes.log.now_fails_with = error("It cannot be.")
    assert writes.writer.write_now([(b"a", b"1")]) is None
    writes.write("one", "a")
    await writes.end()
    assert [type(result.error) for _, result in writes.results] == [error]
    assert writes.appended() == []


async def test_a_closed_writer_and_a_write_without_records_write_nothing_at_once(clock: VirtualClock) -> None:
    writes = Writes(clock)
    assert writes.writer.write_now([]) is None
    writes.writer.close(NotCoordinator("closed"))
    assert writes.writer.write_now([(b"a", b"1")]) is None
    assert writes.appended() == []


async def test_writes_gather_while_an_append_is_under_way(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.hold()
    writes.write("one", "a")
    await clock.settle()
    writes.write("two", "b")
    writes.write("three", "c")
    await clock.settle()
    assert writes.results == []
    writes.log.release()
    await writes.end()
    assert writes.appended() == [[b"a"], [b"b", b"c"]]
    assert [name for name, _ in writes.results] == ["one", "two", "three"]


@pytest.mark.parametrize("error", [None, RequestTimedOut("Not replicated in time.")])
async def test_nothing_is_part_of_a_transaction_whose_marker_is_on_its_way(
    clock: VirtualClock, error: StrandlineError | None
) -> None:
    """What is written behind it would begin a transaction that nobody ends."""
    writes, producer, markers = Writes(clock), ProducerAndEpoch(7, 0), list[WriteResult]()
    writes.writer.write_transactional([(b"a", b"1")], producer, lambda _: None)
    assert not writes.writer.has_transaction(producer), "the log does not have it yet"
    await writes.end()
    assert writes.writer.has_transaction(producer)
    writes.log.hold()
    writes.log.fail_with = error
    for _ in range(2):  # the second is a repetition
        writes.writer.write_marker(TransactionEnd(producer, True, 0, 0), markers.append)
    assert not writes.writer.has_transaction(producer)
    assert not writes.writer.has_transaction(ProducerAndEpoch(8, 0))
    writes.log.release()
    await writes.end()
    assert [result.error for result in markers] == [error] * 2
    assert writes.writer.has_transaction(producer) is (error is not None), "as the log has it"


async def test_a_write_is_never_split_and_an_append_fits_into_a_batch(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.max_bytes = 1000
    writes.write("one", "a", "b", size=200)
    writes.write("two", "c", "d", size=200)
    writes.write("three", "e", size=100)
    writes.write("too large", "f", size=5000)  # the log has to refuse it
    await writes.end()
    assert writes.appended() == [[b"a", b"b"], [b"c", b"d", b"e"], [b"f"]]


async def test_a_fence_is_done_when_all_before_it_are(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.hold()
    writes.write("one", "a")
    writes.write("fence")
    await clock.settle()
    assert writes.results == []
    writes.log.release()
    await writes.end()
    writes.write("another fence")
    await writes.end()
    assert [name for name, _ in writes.results] == ["one", "fence", "another fence"]
    assert writes.appended() == [[b"a"]]


async def test_a_failed_append_fails_its_writes_and_no_others(clock: VirtualClock) -> None:
    writes = Writes(clock)
    error = RequestTimedOut("Not replicated in time.")
    writes.log.fail_with = error
    writes.write("one", "a")
    writes.write("two", "b")
    writes.write("fence")
    await writes.end()
    writes.log.fail_with = None
    writes.write("three", "c")
    await writes.end()
    assert writes.results == [
        ("one", WriteResult(error)),
        ("two", WriteResult(error)),
        ("fence", WriteResult(None)),
        ("three", WriteResult(None, 0)),
    ]


async def test_a_bug_in_the_log_is_an_answer_too(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.fail_with = ZeroDivisionError("a bug")
    writes.write("one", "a")
    await writes.end()
    ((_, result),) = writes.results
    assert type(result.error) is StrandlineError


async def test_a_partition_that_is_not_led_any_more_fails_the_write(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.fail_with = writes.log.max_bytes_error = NotLeaderOrFollower("Another broker leads it.")
    writes.write("one", "a")
    writes.write("two", "b")
    await writes.end()
    assert [type(result.error) for _, result in writes.results] == [NotLeaderOrFollower] * 2


def fail(_: WriteResult) -> None:
    raise ZeroDivisionError


async def test_a_result_that_cannot_be_processed_does_not_hide_the_others(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.writer.write([(b"a", b"1")], fail)
    writes.write("two", "b")
    await writes.end()
    assert writes.results == [("two", WriteResult(None, 1))]
    writes.writer.write([(b"c", b"1")], fail)
    writes.write("three", "d")
    writes.writer.close(NotCoordinator("closed"))
    assert [name for name, _ in writes.results] == ["two", "three"]
    await writes.end()


async def test_a_closed_writer_answers_at_once_and_writes_nothing(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.hold()
    writes.write("under way", "a")
    await clock.settle()
    writes.write("queued", "b")
    closed = NotCoordinator("closed")
    writes.writer.close(closed)
    writes.write("late", "c")
    expected = [("under way", WriteResult(closed)), ("queued", WriteResult(closed)), ("late", WriteResult(closed))]
    assert writes.results == expected
    writes.log.release()
    await writes.end()
    assert writes.results == expected
    assert writes.appended() == [[b"a"]]  # it was on its way, and may well arrive


async def test_records_carry_the_time_of_the_write(clock: VirtualClock) -> None:
    writes = Writes(clock)
    writes.log.hold()
    before = clock.now_ms()
    writes.write("one", "a")
    clock.move(5)
    writes.log.release()
    await writes.end()
    assert [record.timestamp_ms for _, records in writes.log.appends for record in records] == [before]


async def test_what_is_not_committed_in_time_is_not_joined_by_more(clock: VirtualClock) -> None:
    """Clients have given up by then, and send again: that would pile up."""
    writes = Writes(clock)
    writes.log.hold()
    writes.write("under way", "a")
    await clock.settle()
    writes.write("queued", "b")
    clock.move(PATIENCE_MS / 1000 + 1)
    writes.write("refused", "c")
    assert writes.writer.write_now([(b"d", b"1")]) is None
    writes.write("fence")
    ((name, result),) = writes.results
    assert name == "refused"
    assert isinstance(result.error, RequestTimedOut)
    writes.log.release()
    await writes.end()
    assert [name for name, _ in writes.results] == ["refused", "under way", "queued", "fence"]
    assert all(result.error is None for _, result in writes.results[1:])
    writes.write("again", "c")
    await writes.end()
    assert writes.appended() == [[b"a"], [b"b"], [b"c"]]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans(), st.booleans()), max_size=30))
async def test_every_write_has_one_result_in_order(steps: list[tuple[int, bool, bool, bool]]) -> None:
    clock = VirtualClock()
    writes = Writes(clock)
    writes.log.max_bytes = 250
    for at, (keys, fails, settles, at_once) in enumerate(steps):
        writes.log.fail_with = NotEnoughReplicas("Too few.") if fails else None
        names = [f"{at}-{key}" for key in range(keys)]
        result = writes.writer.write_now([(name.encode(), b"v") for name in names]) if at_once else None
        if result is None:
            writes.write(str(at), *names)
        else:
            writes.results.append((str(at), result))
        if settles:
            await clock.settle()
    await writes.end()
    assert [name for name, _ in writes.results] == [str(at) for at in range(len(steps))]
    committed = [record.key for batch in writes.log.batches[0] for record in batch.records]
    expected: list[bytes] = []
    for (name, result), (keys, *_) in zip(writes.results, steps, strict=True):
        if result.error is None and keys:
            assert result.base_offset == len(expected)
            expected += [f"{name}-{key}".encode() for key in range(keys)]
    assert committed == expected


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (UnknownTopicOrPartition, CoordinatorNotAvailable),
        (NotEnoughReplicas, CoordinatorNotAvailable),
        (NotEnoughReplicasAfterAppend, CoordinatorNotAvailable),
        (RequestTimedOut, CoordinatorNotAvailable),
        (NotLeaderOrFollower, NotCoordinator),
        (FencedLeaderEpoch, NotCoordinator),
        (UnknownLeaderEpoch, NotCoordinator),
        (KafkaStorageError, NotCoordinator),
        (MessageTooLarge, StrandlineError),
        (NotCoordinator, NotCoordinator),
    ],
)
def test_clients_are_told_where_to_go(cause: type[StrandlineError], told: type[StrandlineError]) -> None:
    assert type(client_error(cause("A reason."))) is told


async def test_a_write_that_times_out_is_not_visible_until_the_log_is_loaded_again(dictionary: Dictionary) -> None:
    dictionary.log.fail_with = RequestTimedOut("Not replicated in time.")
    with pytest.raises(CoordinatorNotAvailable):
        await dictionary.put("a", "1")
    assert dictionary.get("a") is None
    dictionary.log.fail_with = None
    assert await dictionary.put("a", "2") == 0  # the client tries again
    assert dictionary.get("a") == "2"


async def test_a_client_that_goes_away_does_not_undo_its_write(dictionary: Dictionary) -> None:
    dictionary.log.hold()
    write = await dictionary.start_put("a", "1")
    write.cancel()
    await dictionary.clock.settle()
    dictionary.log.release()
    await dictionary.clock.settle()
    assert dictionary.get("a") == "1"
