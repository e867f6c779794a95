"""Asks the brokers of a cluster how they are: each for its status over HTTP, and one of them for all partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from strandline.admin.commands.cluster.plan import HOST, BrokerPlan
from strandline.admin.commands.cluster.view import (
    BrokerAnswer,
    ClusterAnswers,
    ClusterView,
    PartitionState,
    make_view,
)
from strandline.client import CommandFailed, Json
from strandline.client.http import exchange
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.metadata import MetadataRequest, MetadataResponse
from strandline.wire.primitives import MalformedRequest

# A broker that is paused keeps the others waiting for so long.
_TIMEOUT_S: Final = 1.0


class ClusterWatch:
    """Remembers what the brokers answered last, for rates, and to tell one that starts from one that hangs."""

    def __init__(self, plans: Sequence[BrokerPlan]) -> None:
        self._plans = plans
        self._last: dict[int, tuple[int | None, BrokerAnswer]] = {}

    async def look(self, pids: Mapping[int, int]) -> ClusterView:
        """The cluster now; `pids` are the processes that we run, by the id of the broker. Never raises."""
        before = {node: answer for node, (pid, answer) in self._last.items() if pids.get(node) == pid}
        statuses = await asyncio.gather(*(asyncio.to_thread(_status, plan) for plan in self._plans))
        answers = {plan.node_id: status for plan, status in zip(self._plans, statuses, strict=True) if status}
        asked = [plan for plan in self._plans if plan.node_id in answers]
        partitions = await asyncio.to_thread(_partitions, asked)
        for node, answer in answers.items():
            self._last[node] = (pids.get(node), answer)
        now = ClusterAnswers(brokers=answers, partitions=partitions)
        return make_view(self._plans, pids, now, ClusterAnswers(brokers=before))


def _status(plan: BrokerPlan) -> BrokerAnswer | None:
    """None if it does not answer."""
    try:
        found = exchange(plan.node_id, plan.http_address, "/status", None, what="say how it is", timeout_s=_TIMEOUT_S)
    except CommandFailed:
        return None
    return answer_of(found)


def answer_of(status: Json) -> BrokerAnswer:
    """The part of `/status` that is shown."""
    traffic = status["traffic"]
    return BrokerAnswer(
        is_ready=status["is_ready"],
        is_stopping=any(reason.endswith("is stopping") for reason in status["not_ready_because"]),
        uptime_s=status["uptime_s"],
        controller=(status["controller_epoch"], status["controller_id"]),
        fenced=frozenset(row["node_id"] for row in status["brokers"] if row["is_fenced"]),
        bytes_in=traffic["bytes_in"],
        bytes_out=traffic["bytes_out"],
        messages_in=traffic["messages_in"],
    )


def _partitions(plans: Sequence[BrokerPlan]) -> Sequence[PartitionState] | None:
    """As the first of these brokers that answers knows them."""
    for plan in plans:
        try:
            with Client.connect(HOST, plan.port, timeout_s=_TIMEOUT_S) as client:
                answer = client.request(ApiKey.METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        except (OSError, MalformedRequest):
            continue
        if isinstance(answer, MetadataResponse):
            return partitions_of(answer)
    return None


def partitions_of(answer: MetadataResponse) -> list[PartitionState]:
    """All partitions of a Metadata response."""
    return [
        PartitionState(
            name=f"{topic.name}-{row.partition_index}",
            leader=row.leader_id,
            replicas=tuple(row.replica_nodes),
            in_sync=tuple(row.isr_nodes),
        )
        for topic in answer.topics
        for row in topic.partitions
    ]
