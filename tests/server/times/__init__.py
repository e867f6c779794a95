"""Tests of how requests are timed."""
