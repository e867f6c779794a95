"""The offsets of a log, for tests of what is decided from them."""

from __future__ import annotations

from strandline.remote.manager.partition import LogOffsets


def offsets(
    *, log_start: int = 0, local: int = 0, first_base: int | None = None, active: int = 100, stable: int = 150
) -> LogOffsets:
    return LogOffsets(
        log_start=log_start,
        local_log_start=local,
        first_base=local if first_base is None else first_base,
        active_base=active,
        last_stable_offset=stable,
    )
