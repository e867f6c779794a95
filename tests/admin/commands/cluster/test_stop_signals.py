"""What a second signal means."""

from __future__ import annotations

from strandline.admin.commands.cluster.running import StopSignals
from strandline.testing.clock import VirtualClock


async def test_a_second_ctrl_c_hurries_and_one_that_comes_twice_does_not() -> None:
    clock = VirtualClock()
    signals = StopSignals(clock)
    signals.take()
    assert signals.stop.is_set()
    signals.take()
    assert not signals.hurry.is_set(), "a program around this one has passed it on as well"
    await clock.advance(0.5)
    signals.take()
    assert signals.hurry.is_set()
