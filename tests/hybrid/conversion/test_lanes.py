"""Work for many keys, of which some may hang: each at most once at a time, the longest waiting first."""

from __future__ import annotations

import asyncio

from strandline.hybrid.conversion.lanes import Lane


class Work:
    """Pieces of work that end when a test lets them."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def run(self, piece: str) -> None:
        self.begun.append(piece)
        await self._ends.setdefault(piece, asyncio.Event()).wait()

    async def end(self, piece: str) -> None:
        self._ends.setdefault(piece, asyncio.Event()).set()
        for _ in range(3):  # its task ends, the next one begins
            await asyncio.to_thread(lambda: None)


async def test_keys_take_turns_and_one_that_hangs_comes_last() -> None:
    work = Work()
    async with asyncio.TaskGroup() as group:
        lane = Lane[str, str](group, "work", work.run, at_once=2)
        for key in "abcd":
            lane.want(key, f"{key}1")
        lane.want("c", "c2")  # newer, in the same place
        lane.want("a", "a2")  # runs: what is left to do is found later
        lane.drop("d")
        await work.end("b1")
        assert work.begun == ["a1", "b1", "c2"]
        lane.want("b", "b2")
        await work.end("a1")
        lane.want("a", "a3")
        assert work.begun == ["a1", "b1", "c2", "b2"]
        await work.end("b2")
        assert work.begun == ["a1", "b1", "c2", "b2", "a3"]
        await work.end("c2")
        await work.end("a3")
