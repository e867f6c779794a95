"""The batch coordinator: the order of diskless batches, and everything that is known about them, in a SQL database.

Here: commit, find, list offsets, retention, files and their deletion, producer state, boundaries between tiers, as a
sum of small ports. Not here: bytes of records, object storage, who serves which client.
"""

from strandline.controlplane.database import COMMIT_CHANNEL
from strandline.controlplane.plane import SqlControlPlane

__all__ = ["COMMIT_CHANNEL", "SqlControlPlane"]
