"""Objects as files of a directory."""

from strandline.objects.directory.store import DirectoryStore

__all__ = ["DirectoryStore"]
