"""What tests control instead of waiting for it: clocks, object stores that fail, and later networks.

Production never imports this package.
"""
