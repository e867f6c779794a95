"""Tests of what a broker answers over HTTP."""
