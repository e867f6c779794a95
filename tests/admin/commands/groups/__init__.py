"""Tests of `strandline groups`."""
