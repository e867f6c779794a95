"""The public name of the built-in storage, as written in `remote.log.storage.manager.class.name`. It never moves."""

from strandline.remote.storage import ObjectRemoteStorage

__all__ = ["ObjectRemoteStorage"]
