"""Share groups (KIP-932): Kafka's tools for them, and members that run Kafka's client."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench import java_program, kafka

from interop import share_failures
from interop.broker import CACHE, Target
from interop.kafka_tools import TOOLS, ToolFailed, Tools, outcome_of
from interop.open_transactions import OpenTransaction, write_transaction
from interop.results import Outcome
from interop.share_groups import COMMAND, FROM_THE_BEGINNING, ShareWorld, must_be
from interop.share_members import ShareMembers, wait_stored_together

NAME = "share"
CONSOLE = f"{TOOLS}.consumer.ConsoleShareConsumer"


def why_unavailable() -> str | None:
    return java_program.why_unavailable()


def console(world: ShareWorld) -> None:
    """The console share consumer accepts, releases and rejects what it prints."""
    world.topic("console-share", "console-readers")
    world.write("console-share", [f"value-{number}" for number in range(6)], per_batch=1)
    what = ("--topic", "console-share", "--group", "console-readers", "--timeout-ms", "30000")
    printed = [word for one in ("offset", "delivery") for word in ("--formatter-property", f"print.{one}=true")]
    for count, answer, expect in (
        (2, ("--release",), r"^Offset:1\tDelivery:1\tvalue-1$"),
        (2, (), r"^Offset:1\tDelivery:2\tvalue-1$"),
        (2, ("--reject",), r"^Offset:3\tDelivery:\d\tvalue-3$"),
        (2, (), r"^Offset:5\tDelivery:\d\tvalue-5$"),
    ):
        said = world.tools.ask(CONSOLE, *what, *printed, *answer, "--max-messages", str(count), expect=expect)
        must_be(said.count("Offset:"), count, "records printed")
    world.must_have_lag("console-readers", "console-share", 0)


def tools(world: ShareWorld) -> None:
    """kafka-share-groups: list, describe, reset-offsets, delete-offsets, delete."""
    world.topic("managed", "managers")
    world.write("managed", [str(number) for number in range(10)], per_batch=1)
    ask = partial(world.tools.ask, COMMAND)
    group = ("--group", "managers")
    with world.members as members:
        member = members.start("managers", "managed", "accept")
        member.wait_stored(10)
        ask("--list", expect=r"^managers$")
        ask("--list", "--state", expect=r"^managers +Stable")
        ask("--describe", *group, "--members", expect=r"^managers +\S+ +/127\.0\.0\.1 +\S+ +1 +managed:0$")
        ask("--describe", *group, "--state", expect=r"^managers +\S+ +\(1\) +Stable +1$")
        world.must_have_lag("managers", "managed", 0)
        if "GroupNotEmptyException" not in world.tools.output(COMMAND, "--delete", *group):
            raise ToolFailed("a group with a member could be deleted")
        member.stop()
    ask("--list", "--state", expect=r"^managers +Empty")
    reset = ("--reset-offsets", *group, "--topic", "managed")
    ask(*reset, "--to-earliest", "--dry-run", expect=r"^managers +managed +0 +0$")
    world.must_have_lag("managers", "managed", 0)
    ask(*reset, "--to-earliest", "--execute", expect=r"^managers +managed +0 +0$")
    world.must_have_lag("managers", "managed", 10, start="0")
    ask(*reset, "--to-latest", "--execute", expect=r"^managers +managed +0 +10$")
    ask(*reset, "--to-datetime", "2020-01-01T00:00:00.000", "--execute", expect=r"^managers +managed +0 +0$")
    with world.members as members:
        again = members.start("managers", "managed", "accept")
        again.wait_stored(10)
        must_be({count for _, count in again.deliveries()}, {1}, "deliveries after the reset")
        again.stop()
    ask("--delete-offsets", *group, "--topic", "managed", expect=r"^managed +Successful")
    ask("--describe", *group, expect=r"no offset information")
    ask("--delete", *group, expect=r"Deletion of requested share groups \('managers'\) was successful")
    if "managers" in ask("--list"):
        raise ToolFailed("the deleted group is still listed")


def acknowledgements(world: ShareWorld) -> None:
    """Each record is accepted, released, rejected or renewed, and comes back as often as that says."""
    values = ["accept", "reject", "release-2", "release-4", "renew", "accept"]
    world.topic("answered", "answerers")
    world.write("answered", values, per_batch=1)
    with world.members as members:
        member = members.start("answerers", "answered", "obey")
        member.wait_until(
            lambda: len(member.named("stored", "ACCEPT")) == 5 and len(member.named("stored", "REJECT")) == 1, "the end"
        )
        world.must_have_lag("answerers", "answered", 0)
    delivered = {value: [count for got, count in member.deliveries() if got == value] for value in values}
    expected = {"accept": [1, 1], "reject": [1], "release-2": [1, 2], "release-4": [1, 2, 3, 4], "renew": [1, 1]}
    must_be(delivered, expected, "deliveries")
    must_be(sorted(member.named("stored", "ACCEPT")), [(0, 0), (0, 2), (0, 3), (0, 4), (0, 5)], "accepted records")


def delivery_limit(world: ShareWorld) -> None:
    """A record that always fails is delivered five times, the records around it once each."""
    world.topic("failing", "failers")
    world.write("failing", ["accept", "release-99", "accept"], per_batch=1)
    with world.members as members:
        member = members.start("failers", "failing", "obey")
        member.wait_until(lambda: len(member.named("stored", "RELEASE")) == 5, "five releases")
        world.write("failing", ["accept"])
        member.wait_until(lambda: (0, 3) in member.named("stored", "ACCEPT"), "the record behind it")
    must_be([count for value, count in member.deliveries() if value == "release-99"], [1, 2, 3, 4, 5], "deliveries")
    must_be(len(member.deliveries()), 8, "deliveries in all")


def together(world: ShareWorld) -> None:
    """Two members share one partition: both get records, and each record is accepted once."""
    world.topic("common", "sharers")
    with world.members as members:
        both = [members.start("sharers", "common", "accept", "max.poll.records=10") for _ in range(2)]
        places = world.write("common", [str(number) for number in range(400)], per_batch=5)
        wait_stored_together(both, 400)
        more = world.write("common", [str(number) for number in range(2000)], per_batch=5)
        wait_stored_together(both, 2400)
    world.must_be_accepted_once(places + more, *both)
    if not all(one.named("stored") for one in both):
        raise ToolFailed("one member got everything")


def resets(world: ShareWorld) -> None:
    """share.auto.offset.reset says where a new group begins: at the end unless it is set."""
    world.topic("begun", "from-earliest")
    world.write("begun", ["old"])
    world.configure("from-duration", "share.auto.offset.reset=by_duration:PT1H")
    with world.members as members:
        latest, *others = (
            members.start(group, "begun", "accept") for group in ("from-latest", "from-earliest", "from-duration")
        )

        def has_begun() -> bool:
            """Where a group begins is decided by its first fetch, and nobody can see that."""
            world.write("begun", ["new"])
            return bool(latest.named("stored"))

        latest.wait_until(has_begun, "a record")
        for member in others:
            member.wait_stored(2)
            must_be([value for value, _ in member.deliveries()][:2], ["old", "new"], member.name)
        must_be({value for value, _ in latest.deliveries()}, {"new"}, latest.name)


def isolation(world: ShareWorld) -> None:
    """share.isolation.level: with read_committed aborted records are left out, and open ones held back."""
    world.topic("isolated-share", "uncommitted")
    world.configure("committed", FROM_THE_BEGINNING, "share.isolation.level=read_committed")
    where = world.tools.bootstrap
    write_transaction(where, "share-1", "isolated-share", ["committed-1"])
    write_transaction(where, "share-1", "isolated-share", ["aborted"], commits=False)
    with (
        world.members as members,
        OpenTransaction(where, "share-2", "isolated-share", ["open"]) as transaction,
    ):
        world.write("isolated-share", ["plain"])
        careless = members.start("uncommitted", "isolated-share", "accept")
        careful = members.start("committed", "isolated-share", "accept")
        careless.wait_stored(4)
        careful.wait_stored(1)
        must_be([value for value, _ in careful.deliveries()], ["committed-1"], "records before the open transaction")
        transaction.commit()
        careful.wait_stored(3)
        must_be([value for value, _ in careful.deliveries()], ["committed-1", "open", "plain"], "committed records")
        everything = ["committed-1", "aborted", "open", "plain"]
        must_be([value for value, _ in careless.deliveries()], everything, "records with read_uncommitted")


CHECKS: tuple[Callable[[ShareWorld], None], ...] = (
    console,
    tools,
    acknowledgements,
    delivery_limit,
    together,
    resets,
    isolation,
    *share_failures.CHECKS,
)


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run every check, or the one named `only`."""
    log_file = target.suite_log
    log_file.write_text("")
    members = ShareMembers.build(target.bootstrap, CACHE / f"{target.run_name}-{target.name}-members")
    world = ShareWorld(target, Tools(kafka.install(), target.bootstrap, log_file), members)
    return {
        check.__name__: outcome_of(check.__name__, partial(check, world), log_file)
        for check in CHECKS
        if only in (None, check.__name__)
    }
