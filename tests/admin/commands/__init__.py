"""Tests of the `strandline` command."""
