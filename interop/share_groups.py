"""What the checks of share groups have: Kafka's tools, members, topics and what is written to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer

from interop.broker import Target
from interop.kafka_tools import TOOLS, ToolFailed, Tools
from interop.records import SECONDS, create_topics
from interop.share_members import Place, ShareMember, ShareMembers, accepted_once, unanswered

COMMAND = f"{TOOLS}.consumer.group.ShareGroupCommand"
FROM_THE_BEGINNING = "share.auto.offset.reset=earliest"


@dataclass(frozen=True, slots=True)
class ShareWorld:
    """A broker with share groups."""

    target: Target
    tools: Tools
    members: ShareMembers

    def at(self, bootstrap: str) -> ShareWorld:
        """The same at another broker."""
        return ShareWorld(self.target, self.tools.at(bootstrap), self.members.at(bootstrap))

    def topic(self, name: str, group: str, *settings: str, partitions: int = 1) -> None:
        """A new topic, and a group that is going to read it from its beginning."""
        create_topics(self.tools.bootstrap, {name: {}}, partitions)
        self.configure(group, FROM_THE_BEGINNING, *settings)

    def configure(self, group: str, *settings: str) -> None:
        """Settings of a group, which need not exist."""
        entity = ("--entity-type", "groups", "--entity-name", group)
        self.tools.ask("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", ",".join(settings))

    def write(self, topic: str, values: Iterable[str], *, partitions: int = 1, per_batch: int = 1000) -> list[Place]:
        """Write records to partitions in turn; where they are."""
        settings = {"bootstrap.servers": self.tools.bootstrap, "log_level": 2, "enable.idempotence": True}
        producer = Producer({**settings, "batch.num.messages": per_batch})
        places: list[Place] = []
        failures: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                places.append((message.partition() or 0, message.offset() or 0))
            else:
                failures.append(error.str())

        for number, value in enumerate(values):
            producer.produce(topic, value.encode(), partition=number % partitions, on_delivery=delivered)
            producer.poll(0)
        if producer.flush(SECONDS) or failures:
            raise ToolFailed(f"records of {topic} were not acknowledged: {failures[:3]}")
        return places

    def must_have_lag(self, group: str, topic: str, lag: int, *, start: str = r"\d+") -> None:
        """What the tool says about the one partition of a topic. Raises ToolFailed if that is something else.

        Kafka writes down that the start has moved only with the next change that it has to write down.
        """
        expect = rf"^{group} +{topic} +0 +{start} +{lag}\s*$"
        self.tools.ask(COMMAND, "--describe", "--group", group, "--offsets", expect=expect)

    def must_come_to_be_accepted(self, places: Sequence[Place], *members: ShareMember) -> None:
        """Wait until nobody has to answer any more, and then look. The last member has to be alive."""
        members[-1].wait_until(lambda: not unanswered(places, members), "an answer for the last record")
        self.must_be_accepted_once(places, *members)

    def must_be_accepted_once(self, places: Sequence[Place], *members: ShareMember) -> None:
        complaint = accepted_once(places, members)
        if complaint:
            raise ToolFailed(complaint)


def must_be(found: object, expected: object, what: str) -> None:
    """Raises ToolFailed."""
    if found != expected:
        raise ToolFailed(f"{what}: {found}, not {expected}")
