"""The broker whose transactions are looked at: one of ours, or the one of STRANDLINE_TEST_BOOTSTRAP.

An external one has to have transaction.partition.verification.enable=false, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker import Broker, broker_for_clients


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    # Without verification a partition takes the late write that makes a transaction hang.
    settings = {"transaction.state.log.num.partitions": "2", "transaction.partition.verification.enable": "false"}
    with broker_for_clients(tmp_path_factory.mktemp("transactions") / "data", settings) as running:
        yield running
