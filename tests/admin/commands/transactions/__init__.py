"""Tests of `strandline transactions`."""
