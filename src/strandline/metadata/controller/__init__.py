"""The controller of a broker: its lease, its writes, and its periodic work."""
