"""Clients of a run are processes: one that hangs is killed, what it said is in the history, and another takes over."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from chaos.history import NO_RETURN, Attempt, Begun, Ended, Event, Fault, Run, Trouble, from_line
from chaos.processes import Keeper
from chaos.recorder import Recorder
from chaos.stage import Stage
from chaos.verify import verify

from tests.chaos.test_verify import A, content
from tests.waiting import wait_until


class Client:
    """A keeper at work in a thread, and the history."""

    def __init__(self, work: str) -> None:
        self._output = io.StringIO()
        self.stage = Stage("nowhere:1", ["classic"], 1, Recorder(self._output))
        self.keeper = Keeper(
            stage=self.stage, work=work, name="copy-1", stop=self.stage.stop, module="tests.chaos.misbehaving"
        )
        self.thread: threading.Thread | None = None

    @property
    def history(self) -> list[Event]:
        return [from_line(line) for line in self._output.getvalue().splitlines()]

    def of(self, kind: type[Event]) -> list[Event]:
        return [one for one in self.history if isinstance(one, kind)]


@contextmanager
def kept(work: str) -> Iterator[Client]:
    """A client that is being kept, and is told to stop at the end."""
    client = Client(work)
    client.thread = client.stage.start("copy-1", client.keeper.keep)
    try:
        yield client
    finally:
        client.stage.stop.set()
        client.thread.join(30)
    assert not client.thread.is_alive()


@pytest.mark.parametrize("work", ["stand_still_with_the_lock", "be_suspended"])
def test_a_client_that_hangs_is_replaced_and_the_run_ends(work: str) -> None:
    with kept(work) as client:
        client.stage.recorder.write(Fault(at=0.0, kind="SIGKILL", target="broker 1", seconds=1.0))
        wait_until(lambda: client.of(Attempt), within=60, what="the second process")
    begun, ended, begun_again, attempt = (one for one in client.history if not isinstance(one, Fault))
    assert isinstance(begun, Begun)
    assert isinstance(begun_again, Begun)
    assert isinstance(ended, Ended)
    assert isinstance(attempt, Attempt)
    assert (ended.writer, ended.operation, ended.error) == ("copy-1", "commit_transaction", NO_RETURN)
    assert ended.after == "SIGKILL of broker 1 at 0.0 s"
    assert begun.appends[0].value == "copy-1/1"
    assert begun_again.appends == attempt.appends
    assert attempt.appends[0].value == "copy-1/1000000001"  # after all of the first process


@pytest.mark.parametrize("is_written", [True, False])
def test_what_a_killed_client_had_begun_may_have_been_written_or_not(is_written: bool) -> None:
    with kept("stand_still_with_the_lock") as client:
        wait_until(lambda: client.of(Attempt), within=60, what="the second process")
    values = ["copy-1/1", "copy-1/1000000001"] if is_written else ["copy-1/1000000001"]
    start = Run(seed=1, seconds=1.0, tiers=["classic"])
    assert verify([start, *client.history, *content(A, list(enumerate(values)))]) == []


def test_an_unexpected_error_of_a_client_is_in_the_history_and_nobody_takes_over() -> None:
    client = Client("raise_an_error")
    client.keeper.keep()
    (trouble,) = client.history
    assert isinstance(trouble, Trouble)
    assert trouble.what == "copy-1 failed"
    assert "nothing is here" in trouble.text


def test_a_client_that_crashes_is_trouble() -> None:
    client = Client("crash")
    client.keeper.keep()
    (trouble,) = client.history
    assert isinstance(trouble, Trouble)
    assert trouble.text == "Its process ended with status -6 in produce."


def test_a_client_that_hangs_again_and_again_is_given_up() -> None:
    client = Client("hang_always")
    client.keeper.generations = range(2)
    client.keeper.keep()
    assert len(client.of(Ended)) == len(client.history) == 2


def test_an_abandoned_client_is_killed_although_it_has_time() -> None:
    with kept("stand_still_with_the_lock") as client:
        wait_until(lambda: client.of(Attempt), within=60, what="the second process, which waits for its end")
        client.keeper.abandon.set()
        assert client.thread is not None
        client.thread.join(60)
    assert [one.operation for one in client.of(Ended) if isinstance(one, Ended)] == ["commit_transaction", "wait"]
    assert client.of(Trouble) == []
