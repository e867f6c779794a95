"""An object store with faults that a test chooses: errors, lost answers, short reads, latency, calls that hang."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from strandline.clock import Clock
from strandline.objects import ObjectInfo, ObjectStore, ObjectStoreError, ObjectStoreUnavailable
from strandline.objects.store import Buffer, ObjectRange, range_or_error

T = TypeVar("T")

ANY = "any"
ALWAYS = 1 << 60


class Gate:
    """Holds calls until a test releases them."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    async def wait_reached(self) -> None:
        """Return when a call has reached the gate."""
        await self._reached.wait()

    def release(self) -> None:
        """Let waiting calls and all later calls pass."""
        self._open.set()

    async def pass_through(self) -> None:
        """Wait at the gate; called by the store."""
        self._reached.set()
        await self._open.wait()


@dataclass(slots=True)
class _Fault:
    """What happens to calls of one operation: the next `times` ones after the first `skip`."""

    operation: str
    times: int
    skip: int = 0
    seconds: float = 0.0
    gate: Gate | None = None
    error: ObjectStoreError | None = None
    lose_answer: bool = False
    keep_bytes: int | None = None
    key: str | None = None

    def takes(self, operation: str, keys: tuple[str, ...]) -> bool:
        """Whether the fault applies to this call. Counts the call."""
        if self.operation not in (ANY, operation) or self.times == 0 or (self.key is not None and self.key not in keys):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


@dataclass(frozen=True, slots=True)
class Call:
    """A call that reached the store."""

    operation: str
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Turn:
    """The faults of one call."""

    faults: Sequence[_Fault] = field(default_factory=tuple)

    @property
    def keep_bytes(self) -> int | None:
        return next((fault.keep_bytes for fault in self.faults if fault.keep_bytes is not None), None)


class FaultyStore:
    """A store around another one. Operations are those of `ObjectStore` by name, or `ANY`.

    Faults add up: a call may be delayed, then wait at a gate, then fail. Without faults it behaves
    as the store inside, and passes the contract suite.
    """

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._faults: list[_Fault] = []
        self.calls: list[Call] = []
        self.ranges_together = 1
        """See `ObjectStore.ranges_at_once`. By default each read is a call, as over a network."""

    @property
    def url(self) -> str:
        return self._store.url

    def fail(self, operation: str, *, times: int = 1, skip: int = 0, error: ObjectStoreError | None = None) -> None:
        """Let calls fail before they reach the store inside."""
        error = error or ObjectStoreUnavailable(f"A test lets {operation} fail.")
        self._faults.append(_Fault(operation, times, skip, error=error))

    def lose_answer(self, operation: str, *, times: int = 1, skip: int = 0) -> None:
        """Let calls reach the store inside, and fail afterwards."""
        self._faults.append(_Fault(operation, times, skip, lose_answer=True))

    def shorten(self, operation: str, keep_bytes: int, *, times: int = 1, skip: int = 0) -> None:
        """Let reads ("get", "get_range") answer only their first bytes, which the contract forbids."""
        self._faults.append(_Fault(operation, times, skip, keep_bytes=keep_bytes))

    def delay(self, operation: str, seconds: float, *, times: int = ALWAYS, skip: int = 0) -> None:
        """Let calls take longer."""
        self._faults.append(_Fault(operation, times, skip, seconds=seconds))

    def block(self, operation: str, *, times: int = ALWAYS, skip: int = 0, key: str | None = None) -> Gate:
        """Let calls wait, before they reach the store inside, until the gate is opened: all, or those for one key."""
        gate = Gate()
        self._faults.append(_Fault(operation, times, skip, gate=gate, key=key))
        return gate

    def heal(self) -> None:
        """Remove all faults. Calls that wait at a gate go on waiting."""
        self._faults.clear()

    def count(self, operation: str = ANY) -> int:
        """How many calls reached this store."""
        return sum(operation in (ANY, call.operation) for call in self.calls)

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._call("put", (key,), lambda: self._store.put(key, parts))

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._call("put_new", (key,), lambda: self._store.put_new(key, parts))

    async def put_file(self, key: str, path: Path) -> None:
        await self._call("put_file", (key,), lambda: self._store.put_file(key, path))

    async def get(self, key: str) -> Buffer:
        return await self._read("get", key, lambda: self._store.get(key))

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        return await self._read("get_range", key, lambda: self._store.get_range(key, start, length))

    @property
    def ranges_at_once(self) -> int:
        return self.ranges_together

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        """Each range is a call of `get_range`, with its faults."""
        return await asyncio.gather(*(range_or_error(self, wanted) for wanted in ranges))

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        """A lost answer breaks off after the first object."""
        turn = self._turn("list", (prefix,))
        await self._before(turn)
        async for info in self._store.list(prefix, after=after):
            yield info
            self._after(turn)
        self._after(turn)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._call("delete", tuple(keys), lambda: self._store.delete(keys))

    async def _call(self, operation: str, keys: tuple[str, ...], call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        turn = self._turn(operation, keys)
        await self._before(turn)
        answer = await call()
        self._after(turn)
        return answer

    async def _read(self, operation: str, key: str, call: Callable[[], Coroutine[Any, Any, Buffer]]) -> Buffer:
        turn = self._turn(operation, (key,))
        await self._before(turn)
        data = await call()
        self._after(turn)
        return data if turn.keep_bytes is None else data[: turn.keep_bytes]

    def _turn(self, operation: str, keys: tuple[str, ...]) -> _Turn:
        self.calls.append(Call(operation, keys))
        return _Turn([fault for fault in self._faults if fault.takes(operation, keys)])

    async def _before(self, turn: _Turn) -> None:
        for fault in turn.faults:
            if fault.seconds:
                await self._clock.sleep(fault.seconds)
            if fault.gate is not None:
                await fault.gate.pass_through()
        for fault in turn.faults:
            if fault.error is not None:
                raise fault.error

    def _after(self, turn: _Turn) -> None:
        for fault in turn.faults:
            if fault.lose_answer:
                raise ObjectStoreUnavailable(f"A test loses the answer of {fault.operation}.")
