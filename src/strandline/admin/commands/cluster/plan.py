"""What the options of `strandline cluster` mean: the ports, racks, files and settings of each broker."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strandline.client import CommandFailed

HOST: Final = "127.0.0.1"
_LAST_PORT: Final = 65_535
_REPLICAS: Final = 3
_MIN_IN_SYNC: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    """One broker of the cluster."""

    node_id: int
    rack: str | None
    port: int
    http_port: int
    directory: Path
    """Of the cluster: the files of the broker are in it, under names with its id."""

    @property
    def address(self) -> str:
        """Where Kafka clients reach it."""
        return f"{HOST}:{self.port}"

    @property
    def http_address(self) -> str:
        """Where its status is."""
        return f"{HOST}:{self.http_port}"

    @property
    def settings_file(self) -> Path:
        """With it, the broker can be started by hand."""
        return self.directory / f"broker-{self.node_id}.properties"

    @property
    def log_file(self) -> Path:
        """What it says on standard error."""
        return self.directory / f"broker-{self.node_id}.log"

    def settings(self) -> dict[str, str]:
        """What is its own and not the same for all brokers."""
        rack = {} if self.rack is None else {"broker.rack": self.rack}
        return {
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://{self.address}",
            "strandline.http.listen": self.http_address,
            "strandline.data.dir": str(self.directory / f"broker-{self.node_id}"),
            **rack,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """All brokers, and the settings that they share."""

    directory: Path
    brokers: tuple[BrokerPlan, ...]
    settings: Mapping[str, str]

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return ",".join(broker.address for broker in self.brokers)


def make_plan(
    directory: Path, *, brokers: int, racks: str, port: int, http_port: int, assignments: Mapping[str, str]
) -> ClusterPlan:
    """The plan for so many brokers. Racks are given to them in turn. Raises CommandFailed."""
    names = [name.strip() for name in racks.split(",")] if racks.strip() else []
    if not all(names):
        raise CommandFailed(f"--racks needs names with commas between them, such as a,b,c, but was given {racks!r}.")
    _check_ports(brokers, port, http_port)
    directory = directory.resolve()
    return ClusterPlan(
        directory=directory,
        brokers=tuple(
            BrokerPlan(
                node_id=number + 1,
                rack=names[number % len(names)] if names else None,
                port=port + number,
                http_port=http_port + number,
                directory=directory,
            )
            for number in range(brokers)
        ),
        settings={
            "strandline.objects.url": f"file://{directory}/objects",
            "rsm.config.url": f"file://{directory}/remote",
            **_replication(brokers),
            **assignments,
        },
    )


def _replication(brokers: int) -> dict[str, str]:
    """With three brokers one may be lost: topics get three replicas, and a write counts with two of them."""
    settings = {"default.replication.factor": str(min(_REPLICAS, brokers))}
    return settings | {"min.insync.replicas": str(_MIN_IN_SYNC)} if brokers >= _REPLICAS else settings


def _check_ports(brokers: int, port: int, http_port: int) -> None:
    for option, first in (("--port", port), ("--http-port", http_port)):
        if first < 1 or first + brokers - 1 > _LAST_PORT:
            raise CommandFailed(
                f"{option} {first} is not possible: {brokers} brokers need as many ports from there on, "
                f"and there are ports from 1 to {_LAST_PORT}."
            )
    if abs(port - http_port) < brokers:
        raise CommandFailed(
            f"--port {port} and --http-port {http_port} are too near to each other: {brokers} brokers need as many "
            "ports from each of them on."
        )


def check_ports_are_free(plan: ClusterPlan) -> None:
    """Raises CommandFailed if another program listens on a port of the plan."""
    for broker in plan.brokers:
        for option, port in (("--port", broker.port), ("--http-port", broker.http_port)):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, port))
                except OSError as error:
                    raise CommandFailed(
                        f"Port {port} of {HOST}, which broker {broker.node_id} needs, cannot be used: "
                        f"{error.strerror}. Name other ports with {option}."
                    ) from error


def write_settings(broker: BrokerPlan, common: Mapping[str, str], database_url: str) -> None:
    """The settings of a broker, in a file that only its owner may read: the database's address may hold a password."""
    settings = {**common, "strandline.metadata.url": database_url, **broker.settings()}
    lines = [f"{name}={value}".replace("\\", "\\\\") + "\n" for name, value in settings.items()]
    _write_private(broker.settings_file, lines)


def _write_private(path: Path, lines: Sequence[str]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(lines)
