"""Share groups whose members or broker fail: no record is lost, and none that was accepted comes back."""

from __future__ import annotations

from collections.abc import Callable

from interop.broker import broker_like, fresh_directory, must_be_as_wanted
from interop.share_groups import ShareWorld, must_be
from interop.share_members import wait_stored_together

LOCK_SECONDS = 15  # the least that brokers allow by themselves


def killed(world: ShareWorld) -> None:
    """A member that has records ends by SIGKILL: another one gets them at once."""
    world.topic("orphaned", "orphans")
    places = world.write("orphaned", [str(number) for number in range(50)])
    with world.members as members:
        victim = members.start("orphans", "orphaned", "hold")
        victim.wait_got(50)
        victim.close()
        heir = members.start("orphans", "orphaned", "accept")
        heir.wait_stored(50)
        world.must_be_accepted_once(places, heir)
        must_be({count for _, count in heir.deliveries()}, {2}, "deliveries after a member died")


def frozen(world: ShareWorld) -> None:
    """A member that stops for longer than its locks: another one gets its records, and its own answers are refused."""
    world.topic("frozen", "freezers", f"share.record.lock.duration.ms={LOCK_SECONDS * 1000}")
    places = world.write("frozen", [str(number) for number in range(50)])
    with world.members as members:
        sleeper = members.start("freezers", "frozen", "hold")
        sleeper.wait_got(50)
        sleeper.freeze()
        other = members.start("freezers", "frozen", "hold")
        other.wait_got(50)
        must_be({count for _, count in other.deliveries()}, {2}, "deliveries after the locks have ended")
        sleeper.thaw()
        sleeper.write("\n")
        sleeper.wait_until(lambda: len(sleeper.named("refused")) == 50, "its refused answers")
        other.write("\n")
        other.wait_stored(50)
        world.must_be_accepted_once(places, other, sleeper)


def members_killed(world: ShareWorld) -> None:
    """Three members accept 6,000 records of four partitions; each of the first ones is killed on the way."""
    world.topic("hunted", "hunted-ones", partitions=4)
    places = world.write("hunted", (str(number) for number in range(6000)), partitions=4, per_batch=10)
    with world.members as members:
        started = [members.start("hunted-ones", "hunted", "accept", "max.poll.records=20") for _ in range(3)]
        for victim in range(2):
            wait_stored_together(started, 1000 * (victim + 1))
            started[victim].close()
            started.append(members.start("hunted-ones", "hunted", "accept", "max.poll.records=20"))
        world.must_come_to_be_accepted(places, *started)


def broker_killed(world: ShareWorld) -> None:
    """The broker is killed three times while two members accept records: what was accepted does not come back."""
    directory = fresh_directory(f"{world.target.run_name}-killed-{world.target.name}")
    with broker_like(world.target, directory) as broker:
        there = world.at(broker.bootstrap)
        there.topic("survived", "survivors", partitions=4)
        places = there.write("survived", (str(number) for number in range(6000)), partitions=4, per_batch=10)
        with there.members as members:
            both = [members.start("survivors", "survived", "accept", "max.poll.records=20") for _ in range(2)]
            for goal in (500, 1500, 2500):
                wait_stored_together(both, goal)
                broker.kill()
                broker.start()
            there.must_come_to_be_accepted(places, *both)
        must_be_as_wanted(world.target.topics, directory / "objects" / "wal")


CHECKS: tuple[Callable[[ShareWorld], None], ...] = (killed, frozen, members_killed, broker_killed)
