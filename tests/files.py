"""Files of a directory whose owner deletes some meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(directory: Path) -> list[Path]:
    """The files in a directory and in those below it, sorted; none if it does not exist.

    `Path.rglob` fails if a directory goes while it looks: those of an object store go with their last object.
    """
    return sorted(Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
