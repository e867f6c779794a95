"""Named SQL statements: a package keeps each in a file of a folder, and reads them through `Statements`."""

from __future__ import annotations

from importlib import resources

from strandline.sql.dialect import Dialect


class Statements:
    """The .sql files in the folders `statements` of some packages, read once, by name without the ending.

    With a dialect: a file in the subfolder named after it takes precedence over the file for both databases. A name is
    in one package only.
    """

    def __init__(self, *packages: str, dialect: Dialect | None = None) -> None:
        roots = [resources.files(package).joinpath("statements") for package in packages]
        own = [] if dialect is None else [root.joinpath(dialect.name) for root in roots]
        self._folders = [*own, *roots]
        self._texts: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self._read(f"{name}.sql")
        return text

    def _read(self, name: str) -> str:
        for folder in self._folders[:-1]:
            if folder.joinpath(name).is_file():
                return folder.joinpath(name).read_text(encoding="utf-8").strip()
        return self._folders[-1].joinpath(name).read_text(encoding="utf-8").strip()
