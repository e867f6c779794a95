"""`diskless.migration.state`: a setting of topics that is shown and never set.

It is derived from the topic's flags and from what the control plane knows of its partitions, so it has no place among
the settings that are stored.
"""

from __future__ import annotations

from typing import Final

from strandline.config.declare import STRING, Declaration
from strandline.config.describe import ConfigEntry, ConfigSource

NOT_APPLICABLE: Final = "N/A"
TIERED_ONLY: Final = "TIERED_ONLY"
UNKNOWN: Final = "UNKNOWN"

MIGRATION_STATE: Final = Declaration(
    name="diskless.migration.state",
    kind=STRING,
    default=NOT_APPLICABLE,
    help=(
        "Read-only. How far the topic is on its way from classic to diskless: N/A (a classic topic that is not "
        "tiered), TIERED_ONLY, MIGRATING (some partition has not become diskless yet, or its older records are still "
        "being copied), HYBRID (older records in remote storage, newer ones diskless), DISKLESS_ONLY, or UNKNOWN while "
        "the database does not answer. diskless.enable begins the switch."
    ),
    allowed=(NOT_APPLICABLE, TIERED_ONLY, "MIGRATING", "HYBRID", "DISKLESS_ONLY", UNKNOWN),
)


def migration_state_entry(state: str) -> ConfigEntry:
    """The entry that DescribeConfigs shows."""
    return ConfigEntry(
        name=MIGRATION_STATE.name,
        value=state,
        source=ConfigSource.DEFAULT_CONFIG,
        read_only=True,
        is_sensitive=False,
        kind=MIGRATION_STATE.kind,
        documentation=MIGRATION_STATE.documentation,
        synonyms=(),
    )
