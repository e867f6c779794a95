"""The broker with a slow object store: `python -m bench.slow_objects MILLISECONDS broker ...`.

Every call of the store takes that much longer, as over a network; everything else is the broker as users run it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.__main__ import main
from strandline.clock import Clock, Ids
from strandline.objects import ObjectStore, opening
from strandline.objects.address import ObjectAddress
from strandline.objects.options import ObjectOptions
from strandline.testing.objects import ANY, FaultyStore

_open_bare = opening.open_bare


def _slowed_by(seconds: float) -> None:
    @asynccontextmanager
    async def open_slow(
        address: ObjectAddress, options: ObjectOptions, *, clock: Clock, ids: Ids
    ) -> AsyncIterator[ObjectStore]:
        async with _open_bare(address, options, clock=clock, ids=ids) as store:
            slow = FaultyStore(store, clock)
            slow.delay(ANY, seconds)
            yield slow

    opening.open_bare = open_slow


if __name__ == "__main__":
    _slowed_by(float(sys.argv.pop(1)) / 1000)
    main()
