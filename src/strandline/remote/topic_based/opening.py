"""Opens the description of remote segments that `remote.log.metadata.manager.class.name` names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from strandline.errors import StrandlineError
from strandline.remote.plugins import load_class
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.topic_based.context import MetadataPluginContext

METADATA_CLASS_SETTING: Final = "remote.log.metadata.manager.class.name"
DEFAULT_METADATA_CLASS: Final = "strandline.remote.topic_based.manager.TopicBasedRemoteLogMetadataManager"

_METHODS: Final = (
    "open",
    *(name for name in vars(RemoteLogMetadataManager) if not name.startswith("_")),
)


@asynccontextmanager
async def open_metadata_manager(
    config: Mapping[str, str], context: MetadataPluginContext, *, class_name: str | None = None
) -> AsyncIterator[RemoteLogMetadataManager]:
    """The metadata manager of this broker, at work until the block ends.

    `config` holds what follows rlmm.config., or whatever remote.log.metadata.manager.impl.prefix says. A class that has
    `running()` works inside of it. Raises InvalidConfig, or RemoteStorageError if it does not open.
    """
    name = class_name or DEFAULT_METADATA_CLASS
    chosen = await load_class(METADATA_CLASS_SETTING, name, _METHODS)
    try:
        manager: RemoteLogMetadataManager = await chosen.open(config, context)
    except (StrandlineError, RemoteStorageError):
        raise
    except Exception as error:  # a plugin may raise anything
        raise RemoteStorageError(f"{METADATA_CLASS_SETTING}={name} does not open: {error!r}") from error
    async with AsyncExitStack() as stack:
        stack.push_async_callback(manager.close)
        running = getattr(manager, "running", None)
        if running is not None:
            await stack.enter_async_context(running())
        yield manager
