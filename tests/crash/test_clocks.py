"""A broker whose clock is two days ahead of its database's."""

from __future__ import annotations

from pathlib import Path

from tests.broker import BROKERS_COMPILED, BrokerProcess
from tests.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]

# Read by every Python process that finds it on its path.
SHIFT = """
import time

now, now_ns, ahead = time.time, time.time_ns, 2 * 86_400
time.time = lambda: now() + ahead
time.time_ns = lambda: now_ns() + ahead * 1_000_000_000
"""


def test_a_broker_whose_clock_is_days_ahead_does_not_start(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SHIFT)
    # Another form of the modules than other brokers have: it is not forked from a process that runs already.
    form = "no" if BROKERS_COMPILED != "no" else "auto"
    environment = {"PYTHONPATH": str(tmp_path), "STRANDLINE_COMPILED": form}
    broker = BrokerProcess(tmp_path / "data", {"strandline.metadata.url": postgres_url}, environment)
    broker.spawn()
    try:
        assert broker.wait() == 1
    finally:
        broker.close()
    last = broker.log_text.splitlines()[-1]
    assert last.startswith("strandline: The clock of this broker is ")
    assert "ahead of that of the database" in last
    assert "strandline.clock.difference.max.ms" in last
    assert "Traceback" not in broker.log_text
