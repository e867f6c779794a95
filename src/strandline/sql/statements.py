"""Named SQL: one operation, one file. A package keeps them in a folder and reads them through `Statements`."""

from __future__ import annotations

from importlib import resources


class Statements:
    """The .sql files of one folder, read once, by name without the ending."""

    def __init__(self, package: str, folder: str = "statements") -> None:
        self._root = resources.files(package).joinpath(folder)
        self._texts: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self._root.joinpath(f"{name}.sql").read_text(encoding="utf-8").strip()
        return text
