"""The public name of the built-in storage, as written in `remote.log.storage.manager.class.name`. It never moves."""

from strandline.remote.storage.objects import ObjectRemoteStorage

__all__ = ["ObjectRemoteStorage"]
