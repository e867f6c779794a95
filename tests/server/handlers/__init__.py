"""Tests of the handlers: most of them ask a real broker through the small client of `wire`."""
