"""Notices that another directory has taken the place of the one that was opened.

A disk that is unmounted leaves an empty directory behind, and a copy that is renamed takes the name of the original:
whatever is written there afterwards is lost when the right one is back.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from strandline.objects.store import ObjectStoreUnavailable


class _File(NamedTuple):
    device: int
    inode: int
    modified_ns: int


class Witness:
    """A small object whose content no other directory has. Until there is one, nothing is noticed.

    May be asked by several threads at once. Everything here blocks.
    """

    def __init__(self, root: str, key: str) -> None:
        self._root, self._path, self._key = root, os.path.join(root, key), key
        self._file: _File | None = None
        self._content = b""

    def check(self) -> None:
        """Return if the directory is the one that it was. Raises ObjectStoreUnavailable, and OSErrors."""
        try:
            file = self._look()
            if file == self._file:
                return
            content = Path(self._path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            if self._file is None:
                return
            raise self._replaced() from None
        if self._file is not None and content != self._content:
            raise self._replaced()
        # The first look, the object was written again, or the disk was mounted anew.
        self._content, self._file = content, file

    def _look(self) -> _File:
        found = os.stat(self._path)
        return _File(found.st_dev, found.st_ino, found.st_mtime_ns)

    def _replaced(self) -> ObjectStoreUnavailable:
        return ObjectStoreUnavailable(
            f"file://{self._root} is not the directory that was opened: its object {self._key} is missing, or is "
            "another one. See whether its disk is mounted; nothing needs a restart when it is back."
        )
