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
    "test_demo.py",
    "clients/test_two_brokers_failing.py",
    "spark/test_source.py",
    "clients/test_consumer_protocol.py",
    "clients/test_two_brokers_share_groups.py",
    "compiled/test_units.py",
    "crash/test_diskless_crash_points.py",
    "spark/test_once.py",
    "crash/test_switch_crash_points.py",
    "clients/test_groups.py",
    "clients/test_switch_lifecycle.py",
    "crash/test_share_crashes.py",
    "clients/test_switch_edges.py",
    "crash/test_tiered_kills.py",
    "crash/test_database_states.py",
    "crash/test_crash_points.py",
    "crash/test_switch_two_brokers.py",
    "remote/storage/test_copy_process.py",
    "crash/test_tiered_crash_points.py",
    "crash/test_switch_outages.py",
    "crash/test_conversion_database_back.py",
    "crash/test_tiering_crashes.py",
    "clients/test_tiered.py",
    "crash/test_switch_reconciliation.py",
    "clients/test_records.py",
    "compiled/test_command.py",
    "crash/test_tiering_outages.py",
    "clients/test_migration_commands.py",
    "contracts/test_served_partition.py",
    "crash/test_diskless_stores_away.py",
    "clients/test_converted.py",
    "crash/test_stalls.py",
    "crash/test_tiering_lifecycle.py",
    "server/handlers/test_any_request.py",
    "clients/test_fetching.py",
    "clients/test_two_brokers_diskless.py",
    "contracts/test_object_store.py",
    "compiled/test_both_forms.py",
    "clients/test_switch_under_load.py",
    "crash/test_tiering_layouts.py",
    "pipeline/test_client_two_brokers.py",
    "remote/manager/test_crashes.py",
    "clients/test_two_brokers_tiered.py",
    "wire/test_against_kio.py",
)
TESTS: Final = Path(__file__).parent


def longest_first(items: list[pytest.Item]) -> None:
    """Move the tests of these files to the front; the order is otherwise kept."""
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
