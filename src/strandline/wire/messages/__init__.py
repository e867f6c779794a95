"""Kafka's messages, one module per API, written by tools/generate_messages.py. Do not edit.

Import the module you need: `wire.registry` imports them at first use, so APIs that are never called cost nothing.
"""
