"""What a small request costs the event loop, counted: `python -m bench.counts`.

    .venv/bin/python -m bench.counts                       # a table of all requests
    .venv/bin/python -m bench.counts --functions produce   # which functions are called for one request, and how often
    .venv/bin/python -m bench.counts --write               # take them as the bounds of tests/guards, and into the docs

Each count is for one request in steady state, over a real socket, of a real broker: the median of many requests.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

# Compiled functions do not show in counts, and the plain ones are what a change is made to.
os.environ["STRANDLINE_COMPILED"] = "no"

from bench.asking import Asker, FetchSession, fetch_request, produce_request, served
from bench.counted import CountedBroker, Tally, What
from strandline.wire.api import ApiKey
from strandline.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

_ROOT: Final = Path(__file__).resolve().parent.parent
_BOUNDS: Final = _ROOT / "tests" / "guards" / "bounds.py"
_PAGE: Final = _ROOT / "docs" / "benchmarks.md"
_WARM_UP: Final = 50
_SAMPLES: Final = 41
_KEPT_OVER: Final = 1000

Request = Callable[[], object]


def _produce(asker: Asker) -> Request:
    asker.create("produced", 1)
    return asker.repeat(
        ApiKey.PRODUCE,
        produce_request("produced"),
        lambda answer: served(answer.responses[0].partition_responses[0].error_code, "Produce"),
    )


def _produce_several(partitions: int, name: str, **configs: str) -> Callable[[Asker], Request]:
    """As Kafka's Java producer sends them; with one record for each partition."""

    def make(asker: Asker) -> Request:
        asker.create(name, partitions, **configs)
        request = produce_request(name)
        for partition in range(1, partitions):
            request.topic_data[0].partition_data += produce_request(name, partition).topic_data[0].partition_data
        return asker.repeat(
            ApiKey.PRODUCE,
            request,
            lambda answer: served(max(one.error_code for one in answer.responses[0].partition_responses), "Produce"),
        )

    return make


def _produce_diskless(asker: Asker) -> Request:
    asker.create("diskless", 1, diskless_enable="true")
    return asker.repeat(
        ApiKey.PRODUCE,
        produce_request("diskless"),
        lambda answer: served(answer.responses[0].partition_responses[0].error_code, "Produce"),
    )


def _fetch(asker: Asker) -> Request:
    topic_id = asker.create("fetched", 1)
    asker.ask(ApiKey.PRODUCE, produce_request("fetched"))
    return asker.repeat(
        ApiKey.FETCH,
        fetch_request(topic_id, 1),
        lambda answer: served(not answer.responses[0].partitions[0].records, "Fetch"),
    )


def _session(partitions: int) -> Callable[[Asker], Request]:
    def open_session(asker: Asker) -> Request:
        topic_id = asker.create(f"watched-{partitions}", partitions)
        return FetchSession(asker, fetch_request(topic_id, partitions)).again

    return open_session


def _member(asker: Asker, group: str) -> str:
    """The only member of a stable classic group."""
    asker.find_coordinator(group)
    member_id = asker.new_member_id(group)
    joined = asker.ask(ApiKey.JOIN_GROUP, asker.join_request(group, member_id))
    served(joined.error_code, "JoinGroup")
    asker.send_sync(group, member_id, joined.generation_id, [member_id])
    served(asker.receive_answer(ApiKey.SYNC_GROUP).error_code, "SyncGroup")
    return member_id


def _heartbeat(asker: Asker) -> Request:
    member_id = _member(asker, "beating")
    return asker.repeat(
        ApiKey.HEARTBEAT,
        HeartbeatRequest(group_id="beating", generation_id=1, member_id=member_id),
        lambda answer: served(answer.error_code, "Heartbeat"),
    )


def _consumer_heartbeat(asker: Asker) -> Request:
    asker.create("consumed", 1)
    asker.find_coordinator("consuming")
    member_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    joining = ConsumerGroupHeartbeatRequest(
        group_id="consuming",
        member_id=member_id,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=["consumed"],
        topic_partitions=[],
    )
    joined = asker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, joining)
    served(joined.error_code, "ConsumerGroupHeartbeat")
    owned = [] if joined.assignment is None else joined.assignment.topic_partitions
    beat = ConsumerGroupHeartbeatRequest(
        group_id="consuming", member_id=member_id, member_epoch=joined.member_epoch, rebalance_timeout_ms=-1
    )
    for _ in range(_WARM_UP):  # the assignment, and that it was taken
        beat.topic_partitions = owned
        answer = asker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat)
        served(answer.error_code, "ConsumerGroupHeartbeat")
        beat.member_epoch = answer.member_epoch
        owned = owned if answer.assignment is None else answer.assignment.topic_partitions
    beat.topic_partitions = None
    return asker.repeat(
        ApiKey.CONSUMER_GROUP_HEARTBEAT, beat, lambda answer: served(answer.error_code, "ConsumerGroupHeartbeat")
    )


def _offset_commit(asker: Asker, topic: str = "committed", group: str = "committing") -> Request:
    asker.create(topic, 1)
    member_id = _member(asker, group)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return asker.repeat(
        ApiKey.OFFSET_COMMIT,
        OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=1,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        ),
        lambda answer: served(answer.topics[0].partitions[0].error_code, "OffsetCommit"),
    )


def _offset_fetch(asker: Asker) -> Request:
    """Of a partition with a committed offset."""
    _offset_commit(asker, topic="read", group="reading")()
    wanted = OffsetFetchRequestTopics(name="read", partition_indexes=[0])
    return asker.repeat(
        ApiKey.OFFSET_FETCH,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="reading", topics=[wanted])]),
        lambda answer: served(answer.groups[0].topics[0].partitions[0].committed_offset != 1, "OffsetFetch"),
    )


# A request to a diskless topic ends in other threads: what it leaves for the loop comes when it comes.
REQUESTS: Final[Mapping[str, tuple[Callable[[Asker], Request], int]]] = {
    "produce": (_produce, 1),
    "produce.two-partitions": (_produce_several(2, "two"), 1),
    "produce.16-partitions": (_produce_several(16, "sixteen"), 1),
    # The broker stamps its own time into these batches, for which they take the general way.
    "produce.two-partitions.general": (_produce_several(2, "stamped", message_timestamp_type="LogAppendTime"), 1),
    "fetch": (_fetch, 1),
    "fetch.nothing-new": (_session(1), 1),
    "fetch.nothing-new.10": (_session(10), 1),
    "fetch.nothing-new.100": (_session(100), 1),
    "heartbeat": (_heartbeat, 1),
    "heartbeat.consumer": (_consumer_heartbeat, 1),
    "offset-commit": (_offset_commit, 1),
    "offset-fetch": (_offset_fetch, 1),
    "produce.diskless": (_produce_diskless, 20),
}


class Counted(dict[str, float]):
    """The counts of one request by their names, as in a table."""


def count(names: Sequence[str], *, bytecodes: bool = True) -> dict[str, Counted]:
    """Count these requests on one broker."""
    found: dict[str, Counted] = {}
    with tempfile.TemporaryDirectory() as directory, CountedBroker(Path(directory) / "data") as broker:
        for name in names:
            make, each = REQUESTS[name]
            with Asker(broker.port) as asker:
                request = make(asker)
                for _ in range(_WARM_UP):
                    request()
                found[name] = _counted(broker, request, each, bytecodes=bytecodes)
    return found


def _counted(broker: CountedBroker, request: Request, each: int, *, bytecodes: bool) -> Counted:
    samples = max(_SAMPLES // each, 9)
    calls = broker.per_request(request, samples=samples, each=each)
    counted = Counted(calls=calls.calls, c_calls=calls.c_calls, system_calls=calls.system_calls)
    if bytecodes:
        counted["bytecodes"] = broker.per_request(request, What.BYTECODES, samples=samples, each=each).bytecodes
    counted["blocks_kept"] = round(broker.blocks_kept(request, requests=_KEPT_OVER // each), 3)
    return counted


def functions(name: str) -> Mapping[str, float]:
    """What is called for one request."""
    make, _ = REQUESTS[name]
    with (
        tempfile.TemporaryDirectory() as directory,
        CountedBroker(Path(directory) / "data") as broker,
        Asker(broker.port) as asker,
    ):
        request = make(asker)
        for _ in range(_WARM_UP):
            request()
        return broker.functions(request, requests=200)


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    """As Markdown."""
    columns = Tally._fields
    titles = ("calls", "C calls", "system calls", "bytecodes")
    lines = [f"| request | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for name, counted in found.items():
        cells = (f"{round(counted[column]):,}" if column in counted else "" for column in columns)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write(found: Mapping[str, Mapping[str, float]]) -> None:
    """Replace the tables of tests/guards and of the benchmarks page by these counts."""
    bounds = [
        f'    "{name}": Bound(' + ", ".join(f"{column}={round(counted[column])}" for column in Tally._fields) + "),\n"
        for name, counted in found.items()
    ]
    _replace(_BOUNDS, "    # counted by `python -m bench.counts --write`\n", "".join(bounds), "    # end\n")
    begin = "<!-- counts: written by `python -m bench.counts --write` -->\n"
    _replace(_PAGE, begin, f"\n{table(found)}\n\n", "<!-- end of counts -->\n")


def _replace(path: Path, begin: str, text: str, end: str) -> None:
    head, _, rest = path.read_text().partition(begin)
    _, _, tail = rest.partition(end)
    path.write_text(head + begin + text + end + tail)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.counts", description="What small requests cost, counted.")
    parser.add_argument("--only", default=",".join(REQUESTS), help="names of requests, separated by commas")
    parser.add_argument("--functions", metavar="REQUEST", choices=REQUESTS, help="list what is called for one request")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--write", action="store_true", help="take them as the bounds of tests/guards, and into docs/benchmarks.md"
    )
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    if arguments.functions:
        for name, times in functions(arguments.functions).items():
            print(f"{times:8.2f}  {name}")
        return
    found = count(arguments.only.split(","))
    if arguments.write:
        write(found)
    print(json.dumps(found) if arguments.json else table(found))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
