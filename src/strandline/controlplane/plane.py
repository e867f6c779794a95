"""The control plane as one object."""

from __future__ import annotations

from strandline.controlplane.commits import SqlBatchCommits
from strandline.controlplane.lifecycle import SqlLogLifecycle
from strandline.controlplane.reads import SqlBatchReads


class SqlControlPlane(SqlBatchCommits, SqlBatchReads, SqlLogLifecycle):
    """Every port on one SqlStore. Passes tests/contracts/test_control_plane.py on both databases."""
