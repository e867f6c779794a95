"""For commands that read a broker's data themselves: options that give its settings, and the stores these name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated

import typer

from strandline.admin.commands.start import common_properties
from strandline.client import CommandFailed
from strandline.config import Settings
from strandline.diskless.storage import object_options
from strandline.errors import InvalidConfig
from strandline.objects import ObjectStore, open_objects

DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="DIR", help="The data directory of the broker.", show_default=False)
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The .properties file of the broker.", show_default=False),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.", show_default=False),
]


def settings_of(config: Path | None, assignments: Sequence[str] | None, data_dir: str | None) -> Settings:
    """The settings of a broker that is started with the same options. Raises CommandFailed."""
    try:
        return Settings.from_properties(common_properties(config, assignments or (), data_dir))
    except InvalidConfig as error:
        raise CommandFailed(str(error)) from error


def check_objects(settings: Settings) -> None:
    """Raise CommandFailed if there is no object store: opening it would create an empty one."""
    url = settings.diskless.objects_address
    if url.startswith("memory://"):
        raise CommandFailed(
            "strandline.objects.url=memory:// is a store inside the broker's process, which no other process can read."
        )
    if url.startswith("file://") and not os.path.isdir(url.removeprefix("file://")):
        raise CommandFailed(
            f"There is no directory {url.removeprefix('file://')}: name the data directory or the settings of the "
            "broker with --data-dir, --config or --set strandline.objects.url=URL."
        )


def has_objects(settings: Settings) -> bool:
    """Whether the store for diskless topics that these settings name exists."""
    url = settings.diskless.objects_address
    return not url.startswith("file://") or os.path.isdir(url.removeprefix("file://"))


def is_embedded(settings: Settings) -> bool:
    """Whether the database is a file that belongs to one broker."""
    return settings.cluster.strandline_metadata_url.startswith("sqlite:")


def check_database(settings: Settings) -> None:
    """Raise CommandFailed if the database is a file that is not there; opening it would create an empty one."""
    url = settings.cluster.strandline_metadata_url
    path = url.removeprefix("sqlite:///")
    if url.startswith("sqlite:///") and not os.path.isfile(path):
        raise CommandFailed(f"There is no database at {path}: name the broker's settings with --data-dir or --config.")


def open_bucket(settings: Settings) -> AbstractAsyncContextManager[ObjectStore]:
    """The object store of these settings."""
    return open_objects(settings.diskless.objects_address, object_options(settings.diskless))
