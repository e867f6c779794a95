"""Tiered storage of one broker: whether it is open, following the broker's replicas, reading remote segments.

Here: what joins `remote` with replicas and metadata. Not here: copying, expiring and reading segments (`remote`).
"""
