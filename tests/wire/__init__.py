"""Tests of the protocol: primitives, messages, registry, errors."""
