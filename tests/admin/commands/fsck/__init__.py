"""Tests of `strandline fsck`."""
