"""Signals at inconvenient moments."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from tests.broker import running_broker


def test_an_operator_without_patience_gets_a_clean_stop(tmp_path: Path) -> None:
    """SIGTERM again and again until the process is gone: the first one counts, the others change nothing."""
    with running_broker(tmp_path / "data") as broker:
        for _ in range(3):
            assert broker.process is not None
            pause = threading.Event()
            while broker.process.poll() is None:
                broker.process.send_signal(signal.SIGTERM)
                pause.wait(0.0005)
            assert broker.wait() == 0
            assert (tmp_path / "data" / "logs" / ".kafka_cleanshutdown").exists()
            broker.start()
        assert "Traceback" not in broker.log_text
