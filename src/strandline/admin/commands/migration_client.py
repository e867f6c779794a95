"""Asks brokers how far topics are on their way to diskless, and combines the answers of those that it reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID

from strandline.admin.commands.configs import effective_topic_setting, set_topic_setting
from strandline.admin.http.migration_json import read_topic
from strandline.client import BrokerHttp, Cluster, CommandFailed, HttpUnreachable, check
from strandline.controlplane import MigrationState
from strandline.hybrid.switching.status import TopicMigrationStatus, with_phases

FLAG: Final = "diskless.enable"
STATE: Final = "diskless.migration.state"
_UNKNOWN: Final = "UNKNOWN"
_DESCRIBE: Final = "say how far the switch is"
A = TypeVar("A")


class KnownStatus(NamedTuple):
    """The status of a topic, as far as brokers that can be reached know it."""

    topic_id: UUID
    status: TopicMigrationStatus
    unreached: tuple[str, ...] = ()
    """A sentence for each broker that knows more and could not be asked."""


class MigrationClient:
    """One cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._http = BrokerHttp(cluster)

    def set_flag(self, topic: str, value: str, *, validate_only: bool) -> None:
        """Start or abort the switch. Raises CommandFailed with the controller's sentence."""
        result = set_topic_setting(self._cluster, topic, FLAG, value, validate_only=validate_only)
        done = "cannot be switched to diskless" if value == "true" else "goes on as it is"
        check(result.error_code, result.error_message, f"Topic {topic} {done}")

    def is_flagged(self, topic: str) -> bool:
        """Whether the topic is to be diskless, as the controller has it."""
        return effective_topic_setting(self._cluster, topic, FLAG) == "true"

    def status(self, topic: str) -> KnownStatus:
        """How far a topic is. Raises CommandFailed if there is no such topic, or no broker can tell.

        Every leader is asked: each knows the phases of its own partitions, and the others as the control plane has
        them. If no broker answers over HTTP, Kafka's protocol gives the state of the topic.
        """
        found = self._cluster.metadata([topic]).topics[0]
        check(found.error_code, None, f"Topic {topic} cannot be described")
        leaders = {row.partition_index: row.leader_id for row in found.partitions if row.leader_id >= 0}
        path = f"/topics/{quote(topic, safe='')}/migration"
        answers: dict[int, TopicMigrationStatus] = {}
        unreached: list[str] = []
        for broker in self._leaders_first(leaders.values()):
            if answers and broker not in leaders.values():
                break
            try:
                answers[broker] = read_topic(self._http.get(broker, path, what=_DESCRIBE))
            except CommandFailed as failure:
                if broker in leaders.values():
                    unreached.append(str(failure))
        if not answers:
            return KnownStatus(found.topic_id, self._state_only(topic, unreached), tuple(unreached))
        whole = next(iter(answers.values()))
        led = [
            row
            for broker, answer in answers.items()
            for row in answer.partitions
            if _leads(leaders, broker, row.partition)
        ]
        return KnownStatus(found.topic_id, with_phases(whole, led), tuple(unreached))

    def statuses(self, state: MigrationState | None) -> list[TopicMigrationStatus]:
        """All topics that are switched or were. Raises CommandFailed."""
        query = "" if state is None else "?" + urlencode({"state": state.value})
        found = self._anybody(
            lambda broker: self._http.get(broker, f"/migrations{query}", what="list the topics that are switched")
        )
        return [read_topic(topic) for topic in found["topics"]]

    def complete(self, topic: str) -> None:
        """End the switch although not everything is copied. Raises CommandFailed."""
        path = f"/topics/{quote(topic, safe='')}/migration/complete"
        self._anybody(lambda broker: self._http.post(broker, path, {"yes": True}, what="complete the switch"))

    def _anybody(self, ask: Callable[[int], A]) -> A:
        """The answer of the first broker that can be reached."""
        unreached: HttpUnreachable | None = None
        for broker in self._cluster.brokers():
            try:
                return ask(broker)
            except HttpUnreachable as failure:
                unreached = failure
        raise unreached or CommandFailed("The cluster has no broker at the moment.")

    def _leaders_first(self, leaders: Iterable[int]) -> list[int]:
        first = sorted(set(leaders))
        return first + [broker for broker in self._cluster.brokers() if broker not in first]

    def _state_only(self, topic: str, unreached: Sequence[str]) -> TopicMigrationStatus:
        state = effective_topic_setting(self._cluster, topic, STATE)
        if state == _UNKNOWN:
            reason = " ".join(unreached)
            raise CommandFailed(f"Nobody knows how far {topic} is at the moment. {reason}")
        known = {one.value: one for one in MigrationState}
        return TopicMigrationStatus(topic=topic, state=known.get(state or ""))


def _leads(leaders: dict[int, int], broker: int, partition: int) -> bool:
    return leaders.get(partition) == broker
