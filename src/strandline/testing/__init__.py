"""What tests control instead of waiting for it: clocks, and later stores, networks and crash points.

Production never imports this package.
"""
