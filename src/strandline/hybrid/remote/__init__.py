"""Tiered storage of one broker: opening it, following the broker's replicas, reading remote segments.

Here: what joins `remote` with replicas and metadata. Not here: copying, expiring and reading segments (`remote`).
"""
