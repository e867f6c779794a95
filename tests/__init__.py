"""Tests. What all of them need is set here, before anything of the product is imported."""

import os

# The tests of a process see the sources, which they may watch and replace; the brokers that they start run compiled
# modules where there are some (tests/broker.py). tests/compiled runs the tests of those modules once more.
os.environ.setdefault("STRANDLINE_COMPILED", "no")
