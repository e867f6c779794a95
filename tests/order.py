"""Which files of tests begin first when several processes share the work.

A process takes whole files. One that takes long and comes last keeps a single process busy while the others have
nothing left to do; the number of its tests does not tell. All other files come in random order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

# Those that take more than about 20 seconds, roughly the longest first. `--durations=50` tells when the list is old.
LONGEST: Final = (
    "clients/test_two_brokers_failing.py",
    "clients/test_two_brokers_share_groups.py",
    "crash/test_database_states.py",
    "spark/test_source.py",
    "crash/test_tiered_crash_points.py",
    "clients/test_consumer_protocol.py",
    "crash/test_switch_two_brokers.py",
    "clients/test_switch_lifecycle.py",
    "clients/test_switch_edges.py",
    "test_demo.py",
    "admin/commands/cluster/test_command.py",
    "clients/test_tiered.py",
    "crash/test_switch_crash_points.py",
    "crash/test_tiering_crashes.py",
    "crash/test_switch_outages.py",
    "spark/test_once.py",
    "crash/test_switch_reconciliation.py",
    "server/test_remote_reads.py",
    "clients/test_records.py",
    "crash/test_diskless_crash_points.py",
    "crash/test_tiering_outages.py",
    "crash/test_share_crashes.py",
    "compiled/test_units.py",
    "clients/test_fetching.py",
    "clients/test_groups.py",
    "crash/test_stalls.py",
    "clients/test_two_brokers_diskless.py",
    "crash/test_crash_points.py",
    "clients/test_converted.py",
    "clients/test_migration_commands.py",
    "crash/test_tiering_lifecycle.py",
    "remote/manager/test_crashes.py",
    "hybrid/test_wrong_store.py",
    "hybrid/test_wrong_remote_store.py",
    "compiled/test_command.py",
    "hybrid/test_stores_at_start.py",
    "clients/test_two_brokers_tiered.py",
    "crash/test_tiering_store_away.py",
    "contracts/test_served_partition.py",
    "crash/test_conversion_database_back.py",
    "clients/test_two_brokers_diskless_reads.py",
    "clients/test_diskless.py",
    "crash/test_tiered_store_hangs.py",
    "pipeline/test_client_two_brokers.py",
)
TESTS: Final = Path(__file__).parent


def longest_first(items: list[pytest.Item]) -> None:
    """Move the tests of these files to the front; the order is otherwise kept."""
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
