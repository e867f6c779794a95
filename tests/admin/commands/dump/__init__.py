"""Tests of the commands that print what is stored."""
