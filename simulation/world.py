"""A cluster in one process: machines, their brokers, a controller, and what is checked after every step."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from simulation.controller import SimulatedController
from simulation.disks import Disks
from simulation.loop import LoopClock, VirtualLoop
from simulation.network import Network
from simulation.process import BrokerProcess
from simulation.scenario import Scenario
from simulation.truth import Truth, Violation
from strandline.config import Settings
from strandline.metadata import PartitionImage
from strandline.model import NO_LEADER, Offset
from strandline.replication import LeaderRole, Partition

TOPIC: Final = "t"
TOPIC_ID: Final = UUID(int=1)
BEGAN_MS: Final = 1_790_000_000_000
SESSION_SECONDS: Final = 1.2
_TICK_SECONDS: Final = 0.1


def settings_of(node: int, directory: Path) -> Settings:
    """Everything happens ten times as fast as by default."""
    return Settings.from_properties(
        {
            "node.id": str(node),
            "log.dirs": str(directory),
            "broker.heartbeat.interval.ms": "300",
            "broker.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "replica.lag.time.max.ms": "1500",
            "replica.fetch.wait.max.ms": "250",
            "replica.fetch.backoff.ms": "300",
            "replica.socket.timeout.ms": "1000",
            "replica.high.watermark.checkpoint.interval.ms": "700",
            "log.initial.task.delay.ms": "500",
            "log.retention.check.interval.ms": "1000",
        }
    )


class Machine:
    """Keeps the disk of a broker, and its page cache while it has power."""

    def __init__(self, node: int, directory: Path) -> None:
        self.node, self.directory = node, directory
        self.boots = self.starts = 0
        self.process: BrokerProcess | None = None
        self.damaged_in: int | None = None
        """The broker epoch whose records may be gone; None if everything is there that it wrote."""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive

    @property
    def boot_id(self) -> str:
        return f"boot-{self.node}-{self.boots}"


class World:
    """See the module."""

    def __init__(self, scenario: Scenario, root: Path, loop: VirtualLoop) -> None:
        self.scenario, self.seed = scenario, str(scenario.seed)
        self.loop = loop
        self.chance = random.Random(f"{self.seed}/world")
        self.network = Network(loop, self.seed)
        loop.connect = self.network.connect
        self.violation: Violation | None = None
        self.clock = LoopClock(loop, BEGAN_MS)
        self.disks = Disks(root)
        self.controller = SimulatedController(settings_of(0, root), self.clock, SESSION_SECONDS)
        self.controller.decided = self._decided
        self.machines: dict[int, Machine] = {}
        for node in range(1, scenario.brokers + 1):
            directory = root / str(node)
            directory.mkdir()
            self.machines[node] = Machine(node, directory)
        self.truths = [Truth(f"{TOPIC}-{number}") for number in range(scenario.partitions)]
        self._seen: dict[tuple[int, int], tuple[BrokerProcess, bool, int, Offset]] = {}
        self.trace: list[str] = []
        self.unclean = 0
        self._digest = hashlib.sha256()

    def settings(self, node: int, directory: Path, /) -> Settings:
        """See `Surroundings`."""
        return settings_of(node, directory)

    # The story

    def tell(self, what: str) -> None:
        """One more line of the trace."""
        line = f"{self.loop.time():8.3f}  {what}"
        self.trace.append(line)
        self._digest.update(line.encode())

    @property
    def digest(self) -> str:
        """Equal for runs in which the same has happened."""
        return self._digest.hexdigest()[:16]

    # Machines and brokers

    def start(self, node: int) -> None:
        """Start the broker of a machine that runs none."""
        machine = self.machines[node]
        machine.starts += 1
        machine.process = BrokerProcess(node, machine.starts, machine.directory, machine.boot_id, self)
        self.tell(f"start broker {node}")

    def kill(self, node: int, *, with_machine: bool = False, wiped: bool = False) -> None:
        """A process dies; or a machine, which loses what was not forced to disk; or all its disk."""
        machine = self.machines[node]
        process = machine.process
        if process is not None and process.is_alive:
            process.kill(is_silent=with_machine)
            self._be_seen_dead(process)
        if with_machine or wiped:
            machine.boots += 1
            machine.damaged_in = self.controller.image.brokers[node].epoch
            if wiped:
                self.disks.wipe(machine.directory)
            else:
                self.disks.lose_power(machine.directory, random.Random(f"{self.seed}/disk/{node}/{machine.boots}"))
        self.tell(f"{'wipe' if wiped else 'power loss' if with_machine else 'kill'} broker {node}")

    def _be_seen_dead(self, process: BrokerProcess) -> None:
        """Its lock in the database is free: the controller sees that in two looks."""
        epoch = process._epoch()

        def look() -> None:
            known = self.controller.image.brokers.get(process.node)
            if known is not None and known.epoch == epoch:
                self.controller.fence(process.node)

        self.loop.call_later(0.2 + 0.4 * self.chance.random(), look)

    def running(self) -> Iterator[BrokerProcess]:
        """The brokers that are alive."""
        for machine in self.machines.values():
            if machine.process is not None and machine.process.is_alive:
                yield machine.process

    def is_damaged(self, node: int) -> bool:
        """True if the metadata still counts on records that the broker has lost."""
        damaged = self.machines[node].damaged_in
        return damaged is not None and self.controller.image.brokers[node].epoch == damaged

    def may_lose(self, node: int) -> bool:
        """True if fewer disks are lost then than min.insync.replicas, and another replica has all that is committed."""
        for partition in self.partitions():
            counted = {*partition.isr, *partition.elr}
            if node in counted:
                damaged = [one for one in counted - {node} if self.is_damaged(one)]
                enough = min(self.scenario.min_isr, len(partition.replicas))
                if len(damaged) + 1 >= enough or len(counted) - len(damaged) < 2:
                    return False
        return True

    def partitions(self) -> tuple[PartitionImage, ...]:
        """What the controller knows of them."""
        return self.controller.image.topics[TOPIC].partitions

    # What is checked

    def _decided(self, topic: str, before: PartitionImage, after: PartitionImage) -> None:
        truth = self.truths[after.partition]
        self.tell(
            f"metadata: {topic}-{after.partition} leader {after.leader} epoch {after.leader_epoch} isr {after.isr} "
            f"elr {after.elr} version {after.partition_epoch} committed {truth.end}"
        )
        if after.leader_epoch < before.leader_epoch or after.partition_epoch <= before.partition_epoch:
            raise Violation(f"{truth.name}: epochs do not grow: {before} {after}")
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            raise Violation(f"{truth.name}: another leader in the same epoch: {before} {after}")
        if after.leader != NO_LEADER and after.leader not in after.isr:
            raise Violation(f"{truth.name}: the leader is not in sync: {after}")
        if not set(after.isr) <= set(after.replicas) or set(after.isr) & set(after.elr):
            raise Violation(f"{truth.name}: the sets of replicas contradict each other: {after}")
        if self.controller.is_unclean(before, after) and not (
            before.leader == after.leader and before.leader_epoch == after.leader_epoch
        ):
            self._unclean(truth, after)
            return
        for node in after.isr:
            self._check_member(truth, node, after)

    def _check_member(self, truth: Truth, node: int, image: PartitionImage) -> None:
        """Who is in sync has everything that is committed."""
        machine = self.machines[node]
        process = machine.process
        if process is None or not process.is_alive or self.is_damaged(node):
            return
        if process._epoch() != self.controller.image.brokers[node].epoch:
            return  # it has not heard yet that it is registered
        log = process.log(TOPIC, image.partition)
        if log is not None and log.log_end_offset < truth.end:
            raise Violation(
                f"{truth.name}: broker {node} is in sync ({image.isr}) and its log ends at {log.log_end_offset}, while "
                f"{truth.end} is committed"
            )
        if log is not None and image.leader == node:
            truth.check(f"broker {node}, which is to lead in epoch {image.leader_epoch},", log)

    def _unclean(self, truth: Truth, image: PartitionImage) -> None:
        if not self.scenario.may_lose_data:
            raise Violation(f"{truth.name}: an unclean election, although no committed record is lost: {image}")
        self.unclean += 1
        process = self.machines[image.leader].process
        log = None if process is None or not process.is_alive else process.log(TOPIC, image.partition)
        truth.start_again(log)

    def changed(self, process: BrokerProcess, partition: Partition) -> None:
        """See `Surroundings`. Called by the code that is judged, which must not see what is found."""
        number = partition.topic_partition.partition
        try:
            self._observe(process, number, partition, self.truths[number])
        except Violation as found:
            self.violation = self.violation or found
            self.loop.stop()

    def _observe(self, process: BrokerProcess, number: int, partition: Partition, truth: Truth) -> None:
        log = partition.log
        is_leader, epoch, reached = partition.is_leader, partition.leader_epoch, log.high_watermark
        seen = self._seen.get((process.node, number))
        state = (process, is_leader, epoch, reached)
        if seen == state:
            return
        self._seen[process.node, number] = state
        who = f"broker {process.node}"
        begins = seen is None or seen[0] is not process or (is_leader, epoch) != seen[1:3]
        if is_leader and begins:
            self.tell(f"{who} leads {truth.name} in epoch {epoch}, its log ends at {log.log_end_offset}")
            self._check_only_leader(process, number, epoch)
            if epoch == self.partitions()[number].leader_epoch:
                truth.check(f"{who}, which leads in epoch {epoch},", log)
        if self.scenario.may_lose_data and epoch != self.partitions()[number].leader_epoch:
            return
        if is_leader and isinstance(partition.role, LeaderRole):
            if partition.role.has_caught_up and reached < truth.end and epoch == self.partitions()[number].leader_epoch:
                raise Violation(
                    f"{truth.name}: {who} would tell clients that the log ends at {reached}, and {truth.end} was shown"
                )
            truth.commit(who, log, reached)
        elif reached > truth.end and not self.scenario.may_lose_data:
            raise Violation(f"{truth.name}: {who} follows, and shows {reached}, while {truth.end} is committed")

    def _check_only_leader(self, process: BrokerProcess, number: int, epoch: int) -> None:
        for other in self.running():
            if other is not process:
                partition = other.partition(TOPIC, number)
                if partition is not None and partition.is_leader and partition.leader_epoch == epoch:
                    raise Violation(
                        f"{self.truths[number].name}: {process.node} and {other.node} lead in epoch {epoch}"
                    )

    # Time

    async def tick(self) -> None:
        """What the controller does by itself."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self.controller.tick()
