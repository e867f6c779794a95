"""A running broker for the commands, and a way to run them as a person does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from strandline.admin.commands.main import run
from tests.broker import BrokerProcess, running_broker


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


Command = Callable[..., Outcome]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("admin") / "data") as running:
        yield running


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process: `command("topics", "list")`."""

    def call(*arguments: str) -> Outcome:
        status = run(list(arguments))
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return call


@pytest.fixture
def ask(command: Command, broker: BrokerProcess) -> Command:
    """Run a command against the broker."""
    return lambda *arguments: command(*arguments, "--bootstrap", broker.bootstrap)
