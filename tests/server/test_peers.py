"""Requests to other brokers: what one of them waits for, another one does not."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from strandline.errors import LeaderNotAvailable
from strandline.metadata import EMPTY_IMAGE, MetadataImage
from strandline.metadata.image import BrokerImage, Listener
from strandline.server.peers import MOST_AT_ONCE, BrokerPeers, ParallelPeers
from strandline.tasks import next_turn
from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.messages.describe_cluster import DescribeClusterResponse
from strandline.wire.registry import Message, decode_request, encode_response
from tests.wire.listening import listening_with

CLUSTER = "a-cluster"
OFFER = [
    ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max) for key, versions in SERVED_APIS.items()
]


@dataclass
class SlowBroker:
    """Answers the requests of a connection in their order, as a broker does; those about `held` ids not yet."""

    held: dict[str, asyncio.Event] = field(default_factory=dict)
    connections: int = 0
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            header, message = decode_request(memoryview(await reader.readexactly(length)))
            answer = await self._answer(ApiKey(header.api_key), message)
            frame = encode_response(ApiKey(header.api_key), header.api_version, header.correlation_id, answer)
            writer.write(struct.pack(">i", len(frame)) + frame)

    async def _answer(self, api_key: ApiKey, message: Message) -> Message:
        match api_key:
            case ApiKey.API_VERSIONS:
                return ApiVersionsResponse(api_keys=OFFER)
            case ApiKey.DESCRIBE_CLUSTER:
                return DescribeClusterResponse(cluster_id=CLUSTER)
        (transaction,) = message.transactions
        self.asked.append(transaction.transactional_id)
        if transaction.transactional_id in self.held:
            await self.held[transaction.transactional_id].wait()
        result = AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, transaction_start_ms=77)
        return AddPartitionsToTxnResponse(results_by_transaction=[result])


@dataclass
class FixedImages:
    image: MetadataImage


@asynccontextmanager
async def peers_of(broker: SlowBroker, kind: type[BrokerPeers]) -> AsyncIterator[BrokerPeers]:
    async with listening_with(broker.serve) as port:
        listeners = (Listener("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT"),)
        other = BrokerImage(node_id=2, epoch=1, incarnation_id=uuid.UUID(int=1), listeners=listeners)
        image = replace(EMPTY_IMAGE, cluster_id=CLUSTER, brokers={2: other})
        peers = kind(FixedImages(image), node_id=1, listener="PLAINTEXT", purpose="test")
        try:
            yield peers
        finally:
            peers.close()
            for held in broker.held.values():
                held.set()


async def ask(peers: BrokerPeers, transactional_id: str, *, within: float = 20.0) -> AddPartitionsToTxnResult:
    transaction = AddPartitionsToTxnTransaction(transactional_id=transactional_id)
    request = AddPartitionsToTxnRequest(transactions=[transaction])
    answer = await peers.ask(2, ApiKey.ADD_PARTITIONS_TO_TXN, request, within=within)
    (result,) = answer.results_by_transaction
    assert isinstance(result, AddPartitionsToTxnResult)
    return result


async def wait_asked(broker: SlowBroker, questions: int) -> None:
    async with asyncio.timeout(20):
        while len(broker.asked) < questions:
            await next_turn()


async def test_a_question_that_waits_holds_up_no_other() -> None:
    broker = SlowBroker(held={"slow": asyncio.Event()})
    async with peers_of(broker, ParallelPeers) as peers:
        slow = asyncio.create_task(ask(peers, "slow"))
        await wait_asked(broker, 1)
        for number in range(20):
            found = await ask(peers, f"quick {number}")
            assert (found.transactional_id, found.transaction_start_ms) == (f"quick {number}", 77)
        assert not slow.done()
        broker.held["slow"].set()
        assert (await slow).transactional_id == "slow"
        assert broker.connections == 2, "a connection that is free is used again"


@pytest.mark.parametrize("kind", [BrokerPeers, ParallelPeers])
async def test_what_a_fenced_broker_was_asked_is_not_waited_for(kind: type[BrokerPeers]) -> None:
    """It may stand still, or be cut off: its answer would come when the time of the request is over."""
    broker = SlowBroker(held={"slow": asyncio.Event(), "slower": asyncio.Event()})
    async with peers_of(broker, kind) as peers:
        slow = [asyncio.create_task(ask(peers, name)) for name in ("slow", "slower")]
        await wait_asked(broker, 1)
        peers.give_up(3)
        peers.give_up(2)
        for one in slow:
            with pytest.raises(LeaderNotAvailable, match="was fenced before it answered"):
                await one
        found = await ask(peers, "quick")  # it is back, and the connection is a new one
        assert found.transactional_id == "quick"


async def test_over_one_connection_they_wait_for_each_other() -> None:
    """As a broker answers in the order of requests: what the other kind of peers is for."""
    broker = SlowBroker(held={"slow": asyncio.Event()})
    async with peers_of(broker, BrokerPeers) as peers:
        slow = asyncio.create_task(ask(peers, "slow"))
        await wait_asked(broker, 1)
        with pytest.raises(LeaderNotAvailable):
            await ask(peers, "quick", within=0.2)
        with pytest.raises(LeaderNotAvailable):
            await slow


async def test_there_is_a_most_of_connections_and_few_are_kept() -> None:
    names = [f"slow {number}" for number in range(MOST_AT_ONCE)]
    broker = SlowBroker(held={name: asyncio.Event() for name in names})
    async with peers_of(broker, ParallelPeers) as peers:
        waiting = [asyncio.create_task(ask(peers, name)) for name in names]
        await wait_asked(broker, len(names))
        with pytest.raises(LeaderNotAvailable, match="has not answered earlier requests"):
            await ask(peers, "one too many", within=0.2)
        next_one = asyncio.create_task(ask(peers, "one more"))
        for held in broker.held.values():
            held.set()
        await asyncio.gather(*waiting, next_one)
        assert broker.connections <= MOST_AT_ONCE + 1
        assert "one too many" not in broker.asked
        opened = broker.connections
        await asyncio.gather(*(ask(peers, f"again {number}") for number in range(8)))
        assert broker.connections == opened, "eight are kept"
