"""The broker whose groups are looked at: one of ours, or the one of STRANDLINE_TEST_BOOTSTRAP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker import Broker, broker_for_clients


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_for_clients(tmp_path_factory.mktemp("groups") / "data") as running:
        yield running
