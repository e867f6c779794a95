"""What connections say they are."""

from __future__ import annotations

import pytest

from strandline.server import client_software
from strandline.server.client_software import ClientSoftware, Software


def test_the_last_word_of_a_connection_counts() -> None:
    software = ClientSoftware()
    software.note(1, "librdkafka", "2.0")
    software.note(1, "librdkafka", "2.1")
    assert software.of(1) == Software("librdkafka", "2.1")
    assert software.of(2) == Software(None, None)


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_software, "MOST_CONNECTIONS", 2)
    software = ClientSoftware()
    for number in (1, 2, 1, 3):
        software.note(number, f"client-{number}", "1")
    assert [software.of(number).name for number in (1, 2, 3)] == ["client-1", None, "client-3"]
