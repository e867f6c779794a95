"""A broker in a thread of this process whose event loop counts what it does: calls, system calls, bytecodes.

Counts do not depend on the load of the machine, as times do. Only the thread of the event loop is counted; what the
broker gives to other threads is not.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple, Self

from bench.process import free_port
from strandline.broker import Broker
from strandline.config import Settings

# What goes to the kernel, by the names of Python's functions. uvloop's own calls (epoll) are not seen.
_SYSTEM_CALLS: Final = frozenset(
    (
        *("accept", "close", "fdatasync", "fstat", "fsync", "ftruncate", "lseek", "open", "stat", "unlink"),
        *("pread", "preadv", "pwrite", "pwritev", "read", "readinto", "write", "writev"),
        *("recv", "recv_into", "send", "sendall", "sendfile", "sendmsg"),
    )
)
_PATIENCE_SECONDS: Final = 30.0
# After an answer was sent there may be work left for the next turns of the loop.
_TURNS_AFTER: Final = 3
_ROUNDS: Final = 3


class Tally(NamedTuple):
    """What the event loop has done so far, or for one request."""

    calls: float = 0
    """Python functions that were entered; a coroutine that goes on counts again."""
    c_calls: float = 0
    """Functions of the interpreter and of extension modules that Python code has called."""
    system_calls: float = 0
    """Those of them that go to the kernel."""
    bytecodes: float = 0
    """Instructions of the interpreter."""


class What(Enum):
    """What is counted: instructions cost so much to count that they are counted apart."""

    CALLS = "calls"
    BYTECODES = "bytecodes"


class _Counts:
    """Counts events of one thread. `install` and `remove` belong to that thread."""

    def __init__(self, what: What) -> None:
        self._what = what
        self.calls = self.c_calls = self.system_calls = self.bytecodes = 0
        self.names: Counter[str] = Counter()

    def install(self) -> None:
        if self._what is What.CALLS:
            sys.setprofile(self._profile)
        else:
            sys.settrace(self._trace)

    def remove(self) -> None:
        if self._what is What.CALLS:
            sys.setprofile(None)
        else:
            sys.settrace(None)

    def tally(self) -> Tally:
        return Tally(self.calls, self.c_calls, self.system_calls, self.bytecodes)

    def _profile(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            self.calls += 1
            code = frame.f_code
            self.names[f"{_short(code.co_filename)}:{code.co_qualname}"] += 1
        elif event == "c_call":
            self.c_calls += 1
            is_system_call = _is_system_call(called)
            self.system_calls += is_system_call
            self.names[f"{'SYSTEM ' if is_system_call else ''}C {called.__qualname__}"] += 1

    def _trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.bytecodes += 1
        return self._trace


def _is_system_call(called: Any) -> bool:
    if called.__name__ not in _SYSTEM_CALLS:
        return False
    owner = getattr(called, "__self__", None)
    return called.__module__ in ("posix", "_socket") or type(owner).__name__ in ("socket", "FileIO")


def _short(filename: str) -> str:
    return filename.rpartition("/src/")[2] or filename


class CountedBroker:
    """A broker whose event loop runs in a thread. A block: leaving it stops the broker."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self._settings = Settings.from_properties(
            {
                "strandline.data.dir": str(directory),
                "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                "strandline.http.listen": "",
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.num.partitions": "1",
                **(settings or {}),
            }
        )
        self._ready: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="counted-broker")
        self.broker: Broker
        self.loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        failure = self._ready.get(timeout=_PATIENCE_SECONDS)
        if failure is not None:
            raise failure
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with Broker(self._settings) as self.broker:
                self._ready.put(None)
                await self._stop.wait()
        except BaseException as error:
            self._ready.put(error)
            raise

    def on_loop(self, call: Callable[[], Any]) -> Any:
        """What a function returns that is called by the event loop."""
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.loop.call_soon_threadsafe(lambda: answer.put(call()))
        return answer.get(timeout=_PATIENCE_SECONDS)

    def per_request(self, request: Callable[[], object], what: What = What.CALLS, *, samples: int, each: int) -> Tally:
        """What a request costs: the median of some samples of `each` requests, so that work which is done from time
        to time, for no request, does not count.
        """
        with self._counting(what) as counts:
            idle = [self._sample(counts, lambda: None, 0) for _ in range(samples)]
            busy = [self._sample(counts, request, each) for _ in range(samples)]
        rest, cost = _medians(idle), _medians(busy)
        return Tally(*((total - without) / each for total, without in zip(cost, rest, strict=True)))

    def functions(self, request: Callable[[], object], *, requests: int) -> Mapping[str, float]:
        """The functions that are called for a request, with how often, the most frequent first."""
        with self._counting(What.CALLS) as counts:
            before = self.on_loop(lambda: Counter(counts.names))
            for _ in range(requests):
                request()
            called = self.on_loop(lambda: Counter(counts.names)) - before
        return {name: times / requests for name, times in called.most_common()}

    def blocks_kept(self, request: Callable[[], object], *, requests: int) -> float:
        """Blocks of memory that stay allocated after a request, in the whole process.

        The least of some rounds: what a request leaves behind it leaves in each, but a checkpoint or another errand of
        the broker that falls into one of them keeps blocks of its own.
        """
        each = requests // _ROUNDS
        kept = []
        for _ in range(_ROUNDS):
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(each):
                request()
            self.on_loop(lambda: None)
            gc.collect()
            kept.append((sys.getallocatedblocks() - before) / each)
        return min(kept)

    @contextmanager
    def _counting(self, what: What) -> Iterator[_Counts]:
        counts = _Counts(what)
        self.on_loop(counts.install)
        try:
            yield counts
        finally:
            self.on_loop(counts.remove)

    def _sample(self, counts: _Counts, request: Callable[[], object], times: int) -> Tally:
        before = self.on_loop(counts.tally)
        for _ in range(times):
            request()
        for _ in range(_TURNS_AFTER):
            self.on_loop(lambda: None)
        after = self.on_loop(counts.tally)
        return Tally(*(late - early for late, early in zip(after, before, strict=True)))


def _medians(samples: list[Tally]) -> Tally:
    return Tally(*map(statistics.median, zip(*samples, strict=True)))
