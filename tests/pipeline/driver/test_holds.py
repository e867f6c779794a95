"""What a run holds when the brokers that should take it back are away."""

from __future__ import annotations

from strandline.pipeline.client import TieringClient
from strandline.pipeline.driver.holds import Holds
from tests.admin.http.conversions import CALLS
from tests.broker import free_port


def test_segments_whose_leader_is_away_are_still_held_and_named() -> None:
    """Nothing can be begun behind them: who forgets them believes that the partition has nothing to merge."""
    holds = Holds("driver")
    begun = CALLS["begin-segment"][1]
    holds.hold_segment(begun, "driver/1")
    with TieringClient(f"127.0.0.1:{free_port()}", timeout_s=0.1) as client:
        away = holds.give_up_segments(client)
    assert list(away) == [begun.partition]
    assert "abort" in away[begun.partition]
    assert holds
