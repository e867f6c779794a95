"""Attaches the logs of the brokers a failing test used to its report."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.broker import started_brokers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for broker in started_brokers:
            state = "running" if broker.is_running else "ended"
            report.sections.append((f"log of broker {broker.bootstrap} ({state})", broker.log_text[-6000:]))
    if report.when == "teardown":
        started_brokers[:] = [broker for broker in started_brokers if broker.is_running]
    return report
