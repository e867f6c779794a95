"""What happens to a cluster while it is used. Each step waits a little, and does one of these things."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from simulation.world import TOPIC, World
from strandline.errors import StrandlineError
from strandline.metadata import ElectionType
from strandline.model import NO_LEADER, TopicPartition

_METADATA: Final = "metadata"
_CONTROLLER: Final = "controller"


class Faults:
    """One method for each of them. True if there was something to do."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = random.Random(f"{world.seed}/faults")
        self._kinds: list[tuple[int, Callable[[], bool]]] = [
            (10, self._kill),
            (8, self._lose_power),
            (2, self._wipe),
            (22, self._start),
            (5, self._stop),
            (10, self._cut),
            (10, self._heal),
            (4, self._break),
            (4, self._fail_over),
            (3, self._fence),
            (5, self._balance),
            (4, self._flush),
            (3, self._roll),
            (3, self._delete_records),
            (2, self._grow),
            (1, self._kill_all),
            (2, self._elect_uncleanly),
        ]

    async def run(self, steps: int) -> None:
        """So many steps."""
        weights = [weight for weight, _ in self._kinds]
        for _ in range(steps):
            await asyncio.sleep(0.8 * self._chance.random() ** 2)
            _, fault = self._chance.choices(self._kinds, weights)[0]
            fault()

    async def heal_all(self) -> None:
        """Everything that is broken is mended."""
        world = self._world
        world.tell("everything is healed")
        world.network.heal()
        if not world.controller.is_up:
            world.controller.come_back()
        while True:
            for node in world.machines:
                if not world.machines[node].is_running:
                    world.start(node)
            await asyncio.sleep(0.5)
            if all(machine.is_running for machine in world.machines.values()):
                return

    # Brokers

    def _some(self, *, running: bool) -> int | None:
        nodes = [node for node, machine in self._world.machines.items() if machine.is_running is running]
        return self._chance.choice(nodes) if nodes else None

    def _victim(self) -> int | None:
        """A running broker; often one that leads."""
        leader = self._chance.choice(self._world.partitions()).leader
        if leader != NO_LEADER and self._world.machines[leader].is_running and self._chance.random() < 0.5:
            return leader
        return self._some(running=True)

    def _kill(self) -> bool:
        node = self._victim()
        if node is not None:
            self._world.kill(node)
        return node is not None

    def _may_lose(self, node: int) -> bool:
        return self._world.scenario.may_lose_data or self._world.may_lose(node)

    def _lose_power(self) -> bool:
        node = self._victim()
        if node is None or not self._may_lose(node):
            return False
        self._world.kill(node, with_machine=True)
        return True

    def _wipe(self) -> bool:
        node = self._chance.choice(sorted(self._world.machines))
        if node not in self._world.controller.image.brokers or not self._may_lose(node):
            return False
        self._world.kill(node, wiped=True)
        return True

    def _kill_all(self) -> bool:
        for node, machine in self._world.machines.items():
            if machine.is_running:
                self._world.kill(node)
        return True

    def _start(self) -> bool:
        node = self._some(running=False)
        if node is not None:
            self._world.start(node)
        return node is not None

    def _stop(self) -> bool:
        node = self._victim()
        process = None if node is None else self._world.machines[node].process
        if process is None or not process.is_serving:
            return False
        self._world.tell(f"stop broker {node}")
        process.stop()
        return True

    def _fence(self) -> bool:
        """The controller takes a broker for dead that lives."""
        node = self._victim()
        if node is None:
            return False
        self._world.tell(f"fence broker {node}")
        self._world.controller.fence(node)
        return True

    # Links

    def _nodes(self) -> list[str]:
        return [*(f"broker-{node}" for node in self._world.machines), _CONTROLLER, _METADATA]

    def _cut(self) -> bool:
        network, chance = self._world.network, self._chance
        one = f"broker-{chance.choice(sorted(self._world.machines))}"
        others = [node for node in self._nodes() if node != one]
        cut = others if chance.random() < 0.3 else [chance.choice(others)]
        if chance.random() < 0.5:
            cut = [*cut, "clients"] if len(cut) > 1 and chance.random() < 0.5 else cut
        is_one_way = chance.random() < 0.3
        for other in cut:
            network.cut(other, one)
            if not is_one_way:
                network.cut(one, other)
        self._world.tell(f"cut {one} from {', '.join(cut)}{' in one direction' if is_one_way else ''}")
        return True

    def _heal(self) -> bool:
        self._world.tell("heal the links")
        self._world.network.heal()
        return True

    def _break(self) -> bool:
        one, other = self._chance.sample(sorted(self._world.machines), 2)
        self._world.tell(f"break connections of brokers {one} and {other}")
        self._world.network.break_connections(f"broker-{one}", f"broker-{other}")
        return True

    # The controller

    def _fail_over(self) -> bool:
        world = self._world
        if not world.controller.is_up:
            return False
        world.tell("the controller is gone")
        world.controller.go_down()

        def come_back() -> None:
            if not world.controller.is_up:
                world.tell("another controller takes over")
                world.controller.come_back()

        world.loop.call_later(0.2 + 1.5 * self._chance.random(), come_back)
        return True

    def _balance(self) -> bool:
        self._world.controller.balance(TOPIC)
        return True

    def _grow(self) -> bool:
        number = self._chance.randrange(len(self._world.partitions()))
        self._world.controller.grow(TOPIC, number, self._chance)
        return True

    def _elect_uncleanly(self) -> bool:
        if not self._world.scenario.may_lose_data:
            return False
        for partition in self._world.partitions():
            if partition.leader == NO_LEADER:
                self._world.controller.elect(ElectionType.UNCLEAN, TopicPartition(TOPIC, partition.partition))
        return True

    # Logs

    def _flush(self) -> bool:
        """What is in the logs of a broker becomes safe."""
        node = self._some(running=True)
        process = None if node is None else self._world.machines[node].process
        if process is None or not process.is_serving:
            return False
        for partition in process.replicas.partitions():
            if not partition.log.has_pending_appends:
                partition.log.flusher.flush()
        return True

    def _roll(self) -> bool:
        node = self._some(running=True)
        process = None if node is None else self._world.machines[node].process
        if process is None or not process.is_serving:
            return False
        for partition in process.replicas.partitions():
            if not partition.log.has_pending_appends:
                partition.log.roll()
        return True

    def _delete_records(self) -> bool:
        for image in self._world.partitions():
            process = self._world.machines[image.leader].process if image.leader != NO_LEADER else None
            partition = None if process is None or not process.is_alive else process.partition(TOPIC, image.partition)
            if partition is None or not partition.is_leader:
                continue
            log = partition.log
            before = log.log_start_offset + self._chance.randrange(log.high_watermark - log.log_start_offset + 1)
            try:
                partition.delete_records(before)
            except StrandlineError as error:
                self._world.tell(f"deleting records below {before} is refused: {error}")
            else:
                self._world.tell(f"delete records of {TOPIC}-{image.partition} below {before}")
        return True
